/**
 * Limits a resource that becomes available over time, such as this process' CPU time: a bucket that use fills and time empties.
 * An honest executor stays below the limit; one that exceeds it has to wait.
 */
export class UsageShare {
  private readonly perMs: number;
  private readonly burst: number;
  private level = 0;
  private at = 0;

  /** `perMs`: amount available per millisecond. `burst`: amount that may be used at once. */
  constructor(perMs: number, burst: number) {
    this.perMs = perMs;
    this.burst = burst;
  }

  /** Records a use. `now` is monotonic, in milliseconds. Returns the milliseconds until more may be used; 0 if at once. */
  use(amount: number, now: number): number {
    this.level = Math.max(0, this.level - (now - this.at) * this.perMs) + amount;
    this.at = now;
    // Waits until the bucket is half empty, so that it does not wait for each small use.
    return this.level <= this.burst ? 0 : (this.level - this.burst / 2) / this.perMs;
  }
}
