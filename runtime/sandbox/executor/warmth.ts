/** Isolates that an executor keeps ready without looking at their use: some 2 MB each. V8 makes each further one slower. */
export const roomyIsolates = 64;
/** Beyond that: milliseconds without an event after which a function's isolate is let go of. Opening it again takes 5. */
const crowdedIdleMs = 60_000;
/** The same, where the function has had no event since its load. */
const crowdedUnusedMs = 1_000;

/** A function whose isolates may be let go of. */
export interface Warm {
  /** Isolates that it has. */
  readonly isolates: number;
  /** Whether an event has run in them. */
  readonly isUsed: boolean;
  /** When it last had something to do, by the clock that `now` is of; undefined while it has. */
  readonly idleSince: number | undefined;
  letGo(): void;
}

/**
 * Lets go of isolates that have had nothing to do for `idleMs`, the longest idle first. It does so sooner where there are
 * more than `roomyIsolates`. The next event opens one again.
 */
export function letGoOfIdle(functions: Iterable<Warm>, now: number, idleMs: number): void {
  let isolates = 0;
  const idle: { readonly one: Warm; readonly since: number }[] = [];
  for (const one of functions) {
    isolates += one.isolates;
    const since = one.idleSince;
    if (since !== undefined && one.isolates > 0) idle.push({ one, since });
  }
  for (const { one, since } of idle.toSorted((a, b) => a.since - b.since)) {
    const crowdedMs = Math.min(idleMs, one.isUsed ? crowdedIdleMs : crowdedUnusedMs);
    if (now - since < (isolates > roomyIsolates ? crowdedMs : idleMs)) continue;
    isolates -= one.isolates;
    one.letGo();
  }
}
