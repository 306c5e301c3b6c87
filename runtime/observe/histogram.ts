import type { Naming } from "./counter.ts";
import { LabelledSeries, lineOf } from "./labelled-series.ts";
import type { Family } from "./metric-registry.ts";

interface Observed {
  /** Counts by bucket, the last one for values beyond all bounds. Each value counts in one of them. */
  readonly counts: number[];
  sum: number;
}

/** A histogram: the distribution of observed values over buckets. */
export class Histogram implements Family {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  /** The upper bounds of the buckets, ascending. */
  private readonly bounds: readonly number[];
  private readonly series: LabelledSeries<Observed>;

  constructor({ name, help, labelNames, bounds }: Naming & { readonly bounds: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.bounds = bounds;
    this.series = new LabelledSeries(labelNames, () => ({ counts: Array(bounds.length + 1).fill(0), sum: 0 }));
  }

  /** `values`: the values of all labels, in the order of their names. */
  observe(value: number, ...values: readonly string[]): void {
    const observed = this.series.at(values);
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] ?? 0)) bucket++;
    observed.counts[bucket] = (observed.counts[bucket] ?? 0) + 1;
    observed.sum += value;
  }

  /** Returns the mean of the series whose first label has this value; `undefined` without a value. */
  meanOf(first: string): number | undefined {
    let [count, total] = [0, 0];
    for (const [, { counts, sum }] of this.series.below(first)) {
      count += counts.reduce((all, each) => all + each, 0);
      total += sum;
    }
    return count === 0 ? undefined : total / count;
  }

  *lines(): Iterable<string> {
    for (const { labels, counted } of this.series.all) yield this.text(labels, counted);
  }

  /** Returns all lines of one series together, so that they are consistent. */
  private text(labels: string, { counts, sum }: Observed): string {
    const more = labels === "" ? "" : `,${labels}`;
    let [text, below] = ["", 0];
    for (const [index, count] of counts.entries()) {
      below += count;
      text += `${this.name}_bucket{le="${this.bounds[index] ?? "+Inf"}"${more}} ${below}\n`;
    }
    return `${text}${lineOf(`${this.name}_sum`, labels, sum)}\n${lineOf(`${this.name}_count`, labels, below)}`;
  }
}
