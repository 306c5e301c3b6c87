/** The number of events by the delay of their start after they were written, in whole milliseconds. */
export type Delays = Readonly<Record<string, number>>;

/** The delay that `share` of all events does not exceed, in milliseconds. */
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
