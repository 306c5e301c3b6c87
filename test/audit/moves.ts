/** A line about a slot in a replica's log. */
interface Line {
  readonly time: string;
  readonly msg: string;
  readonly slot?: number;
  /** On `slot released`: duration of the drain. */
  readonly drainedMs?: number;
  /** On `slot runs`: time since the slot was acquired. */
  readonly tookMs?: number;
}

/** All lines about slots in the logs, in the order of their time. */
function linesIn(logs: readonly string[]) {
  const lines = logs.flatMap((log) =>
    log.split("\n").flatMap((text) => {
      const line = text.startsWith("{") ? (JSON.parse(text) as Line) : undefined;
      return line?.slot === undefined ? [] : [{ ...line, slot: line.slot, at: Date.parse(line.time) }];
    }),
  );
  return lines.toSorted((a, b) => a.at - b.at);
}

/**
 * Computes from all replicas' logs how long each slot that moved as planned did not run, in milliseconds: from the begin of its
 * owner's drain until its functions run with the next owner.
 */
export function movesIn(logs: readonly string[]): number[] {
  const begun = new Map<number, number>();
  const pauses: number[] = [];
  for (const { slot, at, msg, drainedMs = 0 } of linesIn(logs)) {
    if (msg === "slot released") begun.set(slot, at - drainedMs);
    const from = begun.get(slot);
    if (msg !== "slot runs" || from === undefined) continue;
    pauses.push(at - from);
    begun.delete(slot);
  }
  return pauses;
}

/**
 * For the slots acquired after a moment: when they were acquired, when the last of them ran, and how long opening took.
 */
export function takeoverIn(logs: readonly string[], since: number): string {
  const later = linesIn(logs).filter(({ at }) => at > since);
  const taken = later.filter(({ msg }) => msg === "slot taken").map(({ at }) => at - since);
  const run = later.filter(({ msg }) => msg === "slot runs");
  const opening = run.map(({ tookMs = 0 }) => tookMs).toSorted((a, b) => a - b);
  return (
    `${taken.length} slots taken ${Math.min(...taken)} to ${Math.max(...taken)} ms after it, ` +
    `the last runs after ${Math.max(...run.map(({ at }) => at - since))} ms; ` +
    `opening took p50 ${opening[Math.floor(opening.length / 2)]} ms, longest ${opening.at(-1)} ms`
  );
}
