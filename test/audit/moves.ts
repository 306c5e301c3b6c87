/** What a replica's log says of a slot. */
interface Line {
  readonly time: string;
  readonly msg: string;
  readonly slot?: number;
  /** Of `slot let go`: what that took. */
  readonly drainedMs?: number;
}

/**
 * Reads from all replicas' logs how long each slot that moved as planned ran nowhere, in milliseconds. That begins when its
 * owner drains it, and ends when its functions run with the next owner.
 */
export function movesIn(logs: readonly string[]): number[] {
  const lines = logs.flatMap((log) =>
    log.split("\n").flatMap((text) => {
      const line = text.startsWith("{") ? (JSON.parse(text) as Line) : undefined;
      return line?.slot === undefined ? [] : [{ ...line, slot: line.slot, at: Date.parse(line.time) }];
    }),
  );
  const begun = new Map<number, number>();
  const pauses: number[] = [];
  for (const { slot, at, msg, drainedMs = 0 } of lines.toSorted((a, b) => a.at - b.at)) {
    if (msg === "slot let go") begun.set(slot, at - drainedMs);
    const from = begun.get(slot);
    if (msg !== "slot runs" || from === undefined) continue;
    pauses.push(at - from);
    begun.delete(slot);
  }
  return pauses;
}
