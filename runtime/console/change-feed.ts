import { createHash } from "node:crypto";
import { type Clock, pause } from "../base/clock.ts";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import type { SourceStatus } from "../informer/fanout/observer.ts";
import type { Topic } from "./schemas.ts";

/** How often is looked, in milliseconds, while somebody listens. */
const lookMs = 100;
/** A look that takes long is followed by a pause of so many times its duration: it takes at most 5 % of a core. */
const restFactor = 20;

/** The part of the status in which changes are looked for. */
export interface WatchedStatus {
  readonly functions: readonly FunctionReport[];
  readonly sources: readonly (Partial<Omit<SourceStatus, "state">> & { readonly state: string })[];
}

type Digests = Record<Topic, string>;

/** Finds out what changed, while somebody listens. Nothing on an event's path calls it. */
export class ChangeFeed {
  private readonly read: () => WatchedStatus;
  private readonly clock: Clock;
  private readonly listeners = new Set<(topics: readonly Topic[]) => void>();
  private looking = false;

  constructor(read: () => WatchedStatus, clock: Clock) {
    this.read = read;
    this.clock = clock;
  }

  /** Calls `hear` with what changed from now on, until the returned function is called. */
  listen(hear: (topics: readonly Topic[]) => void): () => void {
    this.listeners.add(hear);
    if (!this.looking) void this.look();
    return () => this.listeners.delete(hear);
  }

  get listening(): number {
    return this.listeners.size;
  }

  private async look(): Promise<void> {
    this.looking = true;
    let before = digestsOf(this.read());
    while (this.listeners.size > 0) {
      const began = this.clock.monotonic();
      const now = digestsOf(this.read());
      const took = this.clock.monotonic() - began;
      const topics = (Object.keys(now) as Topic[]).filter((topic) => now[topic] !== before[topic]);
      before = now;
      if (topics.length > 0) for (const hear of [...this.listeners]) hear(topics);
      await pause(this.clock, Math.max(lookMs, took * restFactor));
    }
    this.looking = false;
  }
}

/** Ages change all the time, so they are no changes. */
function digestsOf({ functions, sources }: WatchedStatus): Digests {
  const digest = (of: unknown) => createHash("sha1").update(JSON.stringify(of)).digest("base64");
  return {
    functions: digest(
      functions.map(({ lagSeconds, reads, ...rest }) => [rest, reads?.map(({ ageMs, ...read }) => read)]),
    ),
    runs: digest(functions.map(({ name, lastEvent, failures }) => [name, lastEvent, failures])),
    sources: digest(
      sources.map(
        ({ lastByteAgeMs, lastBookmarkAgeMs, lastEventAgeMs, receivedBytes, awayMs, lastError, lastList, ...rest }) => [
          rest,
          lastError?.message,
          lastList?.items,
          lastList?.why,
        ],
      ),
    ),
    "dead-letters": digest(
      functions.map(({ name, deadLetters, deadLettersWithoutBody, failures }) => [
        name,
        deadLetters,
        deadLettersWithoutBody,
        failures,
      ]),
    ),
  };
}
