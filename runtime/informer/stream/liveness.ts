import type { Random } from "../../base/clock.ts";

/** API servers send a bookmark about every 60 s and keep 75 s of history: silence in between means a dead connection. */
const bookmarkedIdleMs = 70_000;
/** client-go asks for five to ten minutes (`reflector.go`, minWatchTimeout), spread so that sources do not reconnect together. */
const longTimeoutS = { from: 300, to: 600 };
/** Without bookmarks a dead connection shows only when the watch should have ended: then it should end soon. */
const shortTimeoutS = { from: 60, to: 120 };
const graceMs = 5000;
/** Sessions that decide: so many without a bookmark, or so many without an event. */
const enough = 2;

/** A connection, as far as its length and its silence are judged. */
export interface ConnectionStats {
  /** The `timeoutSeconds` that the server was asked for. */
  readonly timeoutSeconds: number;
  readonly lastedMs: number;
  readonly events: number;
  readonly bookmarks: number;
}

/** Whether a connection ended well before the time that the server was asked for. */
export const wasCutShort = ({
  lastedMs,
  timeoutSeconds,
}: Pick<ConnectionStats, "lastedMs" | "timeoutSeconds">): boolean => lastedMs < timeoutSeconds * 1000 - graceMs;

/**
 * How long a source's connections live, and how long they may be silent. Most servers send bookmarks, some never do
 * (resources served straight from etcd, aggregated APIs), and none promises them: so it is learnt from what comes.
 */
export class Liveness {
  private readonly random: Random;
  private bookmarksSeen = false;
  private bookmarkless = 0;
  private silent = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** `timeoutSeconds` for the next connection. */
  nextTimeoutSeconds(): number {
    const { from, to } = !this.bookmarksSeen && this.bookmarkless >= enough ? shortTimeoutS : longTimeoutS;
    return Math.floor(from + this.random() * (to - from));
  }

  /**
   * Silence that a connection is allowed, in milliseconds. API servers keep bookmarks back that are no newer than where
   * the watch began (`cache_watcher.go`): until it has brought an event, its silence says nothing.
   * @param events that came on it, bookmarks included.
   */
  idleMs(timeoutSeconds: number, events: number): number {
    return this.bookmarksSeen && events > 0 ? bookmarkedIdleMs : timeoutSeconds * 1000 + graceMs;
  }

  /** A bookmark came that does not end initial events: those come from servers that send no others, too. */
  bookmark(): void {
    this.bookmarksSeen = true;
  }

  /** A connection ended. */
  ended({ lastedMs, events, bookmarks }: ConnectionStats): void {
    if (lastedMs < bookmarkedIdleMs) return;
    this.bookmarkless = bookmarks > 0 ? 0 : this.bookmarkless + 1;
    this.silent = events > 0 ? 0 : this.silent + 1;
  }

  /** Two whole connections brought nothing: perhaps the server's resourceVersions went back, and it waits for ours. */
  get suspicious(): boolean {
    return this.silent >= enough;
  }

  /** The suspicion was looked into. */
  cleared(): void {
    this.silent = 0;
  }
}
