/** How many events began so many whole milliseconds after they were written. */
export type Delays = Readonly<Record<string, number>>;

/** The delay that the `share` of all events does not exceed, in milliseconds. */
export function percentile(delays: Delays, share: number): number {
  const sorted = Object.entries(delays)
    .map(([ms, count]) => [Number(ms), count] as const)
    .sort(([a], [b]) => a - b);
  const all = sorted.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [ms, count] of sorted) {
    seen += count;
    if (seen >= all * share) return ms;
  }
  return Number.NaN;
}
