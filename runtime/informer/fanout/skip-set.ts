import type { Clock } from "../../base/clock.ts";

/**
 * So many namespaces are left out at most. Their ranges take 7 KB of the request line, where proxies allow 8, and the server
 * compares each change with every range.
 */
const most = 64;
/** So many are counted at most. */
const mostCounted = 1_000;
/** A server that knows no `shardSelector` is not asked for so long. */
const ignoredMs = 3_600_000;
/** After a connection that failed, perhaps because of it: as long as a connection lasts. */
const failedMs = 600_000;

/** The namespaces whose changes nobody at a source wants, and whether the server can be asked to leave them out. */
export class SkipSet {
  private readonly clock: Clock;
  /** Changes by namespace, each worth half of those that came after the connection before. */
  private counts = new Map<string, number>();
  private asksAgainAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A change came that nobody wants. */
  came(namespace: string): void {
    const count = this.counts.get(namespace);
    if (count !== undefined || this.counts.size < mostCounted) this.counts.set(namespace, (count ?? 0) + 1);
  }

  /**
   * Those that the next connection is to leave out: of those that brought most. Of one that is left out nothing comes to be
   * counted, so that it is asked for again after some connections.
   */
  leaveOut(isWanted: (namespace: string) => boolean): ReadonlySet<string> {
    if (this.counts.size === 0) return none;
    const unwanted = [...this.counts].filter(([namespace]) => !isWanted(namespace)).sort(([, a], [, b]) => b - a);
    this.counts = new Map(unwanted.flatMap(([namespace, count]) => (count > 1 ? [[namespace, count >> 1]] : [])));
    if (this.clock.monotonic() < this.asksAgainAt) return none;
    return new Set(unwanted.slice(0, most).map(([namespace]) => namespace));
  }

  /** What was to be left out came. */
  ignored(): void {
    this.asksAgainAt = this.clock.monotonic() + ignoredMs;
  }

  /** The server, or what stands before it, did not accept the connection, for whatever reason. */
  failed(): void {
    this.asksAgainAt = this.clock.monotonic() + failedMs;
  }
}

const none: ReadonlySet<string> = new Set();
