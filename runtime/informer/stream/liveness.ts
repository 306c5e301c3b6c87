import type { Random } from "../../base/clock.ts";

/**
 * Allowed silence when the server sends bookmarks, in milliseconds. API servers send a bookmark about every 60 s and keep 75 s of
 * history: silence in between means a dead connection.
 */
const bookmarkedIdleMs = 70_000;
/**
 * Range of a watch's length, in seconds. client-go uses five to ten minutes (`reflector.go`, minWatchTimeout), spread so that
 * sources do not reconnect together.
 */
const longTimeoutS = { from: 300, to: 600 };
/**
 * Range without bookmarks, in seconds: a dead connection shows only when the watch should have ended, so it is made to end soon.
 */
const shortTimeoutS = { from: 60, to: 120 };
const graceMs = 5000;
/** Number of consecutive connections without a bookmark, or without an event, that decides. */
const enough = 2;

/** Statistics of one connection that its length and its silence are judged by. */
export interface ConnectionStats {
  /** The `timeoutSeconds` requested from the server. */
  readonly timeoutSeconds: number;
  readonly lastedMs: number;
  readonly events: number;
  readonly bookmarks: number;
}

/** Whether a connection ended well before the requested time. */
export const wasCutShort = ({
  lastedMs,
  timeoutSeconds,
}: Pick<ConnectionStats, "lastedMs" | "timeoutSeconds">): boolean => lastedMs < timeoutSeconds * 1000 - graceMs;

/**
 * Decides how long a source's connections live, and how long they may be silent. Most servers send bookmarks, some never do
 * (resources served straight from etcd, aggregated APIs), and bookmarks are never guaranteed; so this is learnt from what
 * arrives.
 */
export class Liveness {
  private readonly random: Random;
  private bookmarksSeen = false;
  private bookmarkless = 0;
  private silent = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** Returns `timeoutSeconds` for the next connection. */
  nextTimeoutSeconds(): number {
    const { from, to } = !this.bookmarksSeen && this.bookmarkless >= enough ? shortTimeoutS : longTimeoutS;
    return Math.floor(from + this.random() * (to - from));
  }

  /**
   * Returns the silence that a connection is allowed, in milliseconds. API servers hold back bookmarks that are not newer than
   * where the watch began (`cache_watcher.go`), so silence means nothing until the connection has delivered an event.
   * @param events events received on it, bookmarks included.
   */
  idleMs(timeoutSeconds: number, events: number): number {
    return this.bookmarksSeen && events > 0 ? bookmarkedIdleMs : timeoutSeconds * 1000 + graceMs;
  }

  /** Records a bookmark that does not end initial events: servers that send no other bookmarks send those too. */
  bookmark(): void {
    this.bookmarksSeen = true;
  }

  /** Records the end of a connection. */
  ended({ lastedMs, events, bookmarks }: ConnectionStats): void {
    if (lastedMs < bookmarkedIdleMs) return;
    this.bookmarkless = bookmarks > 0 ? 0 : this.bookmarkless + 1;
    this.silent = events > 0 ? 0 : this.silent + 1;
  }

  /**
   * Whether two whole connections delivered nothing: perhaps the server's resourceVersions went back, and it is waiting for ours.
   */
  get suspicious(): boolean {
    return this.silent >= enough;
  }

  /** Records that the suspicion was checked. */
  cleared(): void {
    this.silent = 0;
  }
}
