import type { Clock } from "./clock.ts";

/** A token bucket: limits a rate to `perSecond`, with bursts of up to `burst`. */
export class TokenBucket {
  private readonly clock: Clock;
  private readonly burst: number;
  private readonly perSecond: number;
  private tokens: number;
  private at: number;

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.clock = clock;
    this.burst = burst;
    this.perSecond = perSecond;
    this.tokens = burst;
    this.at = clock.monotonic();
  }

  /** Takes `count` tokens if that many are available. Returns whether it did. */
  take(count = 1): boolean {
    const now = this.clock.monotonic();
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.at) / 1000) * this.perSecond);
    this.at = now;
    if (this.tokens < count) return false;
    this.tokens -= count;
    return true;
  }
}
