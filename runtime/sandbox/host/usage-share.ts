/**
 * A share of something that time brings, such as of this process' CPU: a bucket that use fills and time empties. An honest
 * executor stays below it; one that would take all is made to wait.
 */
export class UsageShare {
  private readonly perMs: number;
  private readonly burst: number;
  private level = 0;
  private at = 0;

  /** `perMs`: what each millisecond brings; `burst`: what may be used at once. */
  constructor(perMs: number, burst: number) {
    this.perMs = perMs;
    this.burst = burst;
  }

  /** Notes so much use; `now` is monotonic, in milliseconds. Gives the milliseconds until more may be used, 0 for at once. */
  use(amount: number, now: number): number {
    this.level = Math.max(0, this.level - (now - this.at) * this.perMs) + amount;
    this.at = now;
    // Down to the half, so that it is not made to wait for each piece.
    return this.level <= this.burst ? 0 : (this.level - this.burst / 2) / this.perMs;
  }
}
