import type { Clock } from "../base/clock.ts";
import { TokenBucket } from "../base/token-bucket.ts";

/** Limits of one function's log, in lines and bytes: burst, and per second. */
const lines = { burst: 1_000, perSecond: 200 };
const bytes = { burst: 2 ** 20, perSecond: 2 ** 18 };
/** Milliseconds between two reports about dropped lines of one function. */
const wordMs = 10_000;

interface LogShare {
  readonly lines: TokenBucket;
  readonly bytes: TokenBucket;
  dropped: number;
  reportedAt: number;
}

/** Limits the rate of each function's log, so that no function fills the log, its reader or the disk. */
export class LogLimit {
  private readonly clock: Clock;
  private readonly shares = new Map<string, LogShare>();
  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether a function may write a line of `length` characters now. */
  admits(name: string, length: number): boolean {
    const share = this.shareOf(name);
    const isAdmitted = share.lines.take() && share.bytes.take(length);
    if (!isAdmitted) share.dropped++;
    return isAdmitted;
  }

  /** Returns how many lines of a function were dropped since the last report; 0 while it is too early for another. */
  takeDropped(name: string): number {
    const share = this.shareOf(name);
    const now = this.clock.monotonic();
    if (share.dropped === 0 || now - share.reportedAt < wordMs) return 0;
    const { dropped } = share;
    share.dropped = 0;
    share.reportedAt = now;
    return dropped;
  }

  private shareOf(name: string): LogShare {
    let share = this.shares.get(name);
    if (!share) {
      share = {
        lines: new TokenBucket(this.clock, lines.burst, lines.perSecond),
        bytes: new TokenBucket(this.clock, bytes.burst, bytes.perSecond),
        dropped: 0,
        reportedAt: Number.NEGATIVE_INFINITY,
      };
      this.shares.set(name, share);
    }
    return share;
  }
}
