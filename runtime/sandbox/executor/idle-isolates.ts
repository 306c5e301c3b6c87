/** Number of isolates that an executor keeps regardless of their use, at some 2 MB each. V8 gets slower with each further one. */
export const isolatesAlwaysKept = 64;
/** Beyond that number: milliseconds without an event after which a function's isolate is closed. Opening it again takes 5 ms. */
const crowdedIdleMs = 60_000;
/** The same for a function that has had no event since its load. */
const crowdedUnusedMs = 1_000;
/**
 * The same with few isolates. Such an isolate has no handler's state, and most functions of a small cluster wait for long: ten
 * take 20 MB less, 100 take 180 MB less.
 */
const unusedMs = 10_000;

/** A function whose isolates may be closed. */
export interface ClosableFunction {
  /** Number of its isolates. */
  readonly isolates: number;
  /** Whether an event has run in them. */
  readonly isUsed: boolean;
  /** When it last had work, by the same clock as `now`; `undefined` while it is busy. */
  readonly idleSince: number | undefined;
  letGo(): void;
}

/**
 * Closes isolates that have been idle for `idleMs`, the longest idle first. The time is shorter for isolates that no event has used,
 * and with more than `isolatesAlwaysKept` isolates. The next event opens one again.
 */
export function closeIdleIsolates(functions: Iterable<ClosableFunction>, now: number, idleMs: number): void {
  let isolates = 0;
  const idle: { readonly one: ClosableFunction; readonly since: number }[] = [];
  for (const one of functions) {
    isolates += one.isolates;
    const since = one.idleSince;
    if (since !== undefined && one.isolates > 0) idle.push({ one, since });
  }
  for (const { one, since } of idle.toSorted((a, b) => a.since - b.since)) {
    const isCrowd = isolates > isolatesAlwaysKept;
    const ownMs = one.isUsed ? (isCrowd ? crowdedIdleMs : idleMs) : isCrowd ? crowdedUnusedMs : unusedMs;
    if (now - since < Math.min(idleMs, ownMs)) continue;
    isolates -= one.isolates;
    one.letGo();
  }
}
