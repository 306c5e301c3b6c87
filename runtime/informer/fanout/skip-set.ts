import type { Clock } from "../../base/clock.ts";

/**
 * Most namespaces that are left out. Their ranges take 7 KB of the request line, of which proxies allow 8 KB, and the server
 * compares each change with every range.
 */
const most = 64;
/** Most namespaces that are counted. */
const mostCounted = 1_000;
/** How long a server that ignores `shardSelector` is not sent one again, in milliseconds. */
const ignoredMs = 3_600_000;
/**
 * How long no selector is sent after a connection that failed, perhaps because of it, in milliseconds: the length of one
 * connection.
 */
const failedMs = 600_000;

/** Namespaces whose changes no subscriber of a source wants, and whether the server can be asked to leave them out. */
export class SkipSet {
  private readonly clock: Clock;
  /** Unwanted changes by namespace. Counts are halved with each connection. */
  private counts = new Map<string, number>();
  private asksAgainAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Counts a change that no subscriber wants. */
  came(namespace: string): void {
    const count = this.counts.get(namespace);
    if (count !== undefined || this.counts.size < mostCounted) this.counts.set(namespace, (count ?? 0) + 1);
  }

  /**
   * Returns the namespaces that the next connection leaves out: those with most unwanted changes. No changes are counted for a
   * namespace that is left out, so its count decays and it is requested again after some connections.
   */
  leaveOut(isWanted: (namespace: string) => boolean): ReadonlySet<string> {
    if (this.counts.size === 0) return none;
    const unwanted = [...this.counts].filter(([namespace]) => !isWanted(namespace)).sort(([, a], [, b]) => b - a);
    this.counts = new Map(unwanted.flatMap(([namespace, count]) => (count > 1 ? [[namespace, count >> 1]] : [])));
    if (this.clock.monotonic() < this.asksAgainAt) return none;
    return new Set(unwanted.slice(0, most).map(([namespace]) => namespace));
  }

  /** Records that the server sent changes that it was asked to leave out. */
  ignored(): void {
    this.asksAgainAt = this.clock.monotonic() + ignoredMs;
  }

  /** Records that the server, or a proxy before it, did not accept the connection, for whatever reason. */
  failed(): void {
    this.asksAgainAt = this.clock.monotonic() + failedMs;
  }
}

const none: ReadonlySet<string> = new Set();
