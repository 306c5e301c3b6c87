/** One histogram of Prometheus's text, summed over its labels. */
export class HistogramReading {
  readonly count: number;
  readonly sum: number;
  private readonly buckets: ReadonlyMap<number, number>;

  private constructor(buckets: ReadonlyMap<number, number>, count: number, sum: number) {
    this.buckets = buckets;
    this.count = count;
    this.sum = sum;
  }

  static of(text: string, name: string): HistogramReading {
    const buckets = new Map<number, number>();
    for (const [, bound, value] of text.matchAll(new RegExp(`^${name}_bucket\\{.*le="([^"]+)".*\\} (\\d+)$`, "gm"))) {
      const limit = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
      buckets.set(limit, (buckets.get(limit) ?? 0) + Number(value));
    }
    return new HistogramReading(buckets, total(text, `${name}_count`), total(text, `${name}_sum`));
  }

  since(before: HistogramReading): HistogramReading {
    const buckets = [...this.buckets].map(
      ([limit, count]) => [limit, count - (before.buckets.get(limit) ?? 0)] as const,
    );
    return new HistogramReading(new Map(buckets), this.count - before.count, this.sum - before.sum);
  }

  /** The smallest bucket's bound that `share` of all observations does not exceed. */
  atMost(share: number): number {
    const sorted = [...this.buckets].sort(([a], [b]) => a - b);
    return sorted.find(([, count]) => count >= this.count * share)?.[0] ?? Number.NaN;
  }

  /** The share of observations that are at most `limit`, which is a bucket's bound. */
  shareWithin(limit: number): number {
    return (this.buckets.get(limit) ?? Number.NaN) / this.count;
  }
}

/** The sum of a metric over its labels. */
export function total(text: string, name: string): number {
  let sum = 0;
  for (const [, value] of text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "gm"))) sum += Number(value);
  return sum;
}
