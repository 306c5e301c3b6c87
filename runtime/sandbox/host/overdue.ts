import type { Clock, Timer } from "../../base/clock.ts";

/** Milliseconds for what waits to be read, or is to come with the next heartbeat (200 ms), if this process or the machine stood still. */
const catchUpMs = 250;

/** Waits for something that has to come again and again, and tells when it has not for too long. */
export class Overdue {
  private readonly clock: Clock;
  private readonly over: (waitedMs: number) => void;
  private timer: Timer | undefined;
  private since = 0;
  private limitMs = 0;
  private lookAt = 0;
  private isCatchingUp = false;

  /** `over` is called once it has lasted too long; what is not expected again after that is not waited for. */
  constructor(clock: Clock, over: (waitedMs: number) => void) {
    this.clock = clock;
    this.over = over;
  }

  /** It came, or is waited for from now on: the next time within `limitMs`. */
  expect(limitMs: number): void {
    this.since = this.clock.monotonic();
    this.limitMs = limitMs;
    this.isCatchingUp = false;
    // One timer for many of these: when it is due it looks how much is left.
    if (this.timer && this.lookAt <= this.since + limitMs) return;
    this.timer?.cancel();
    this.lookIn(limitMs);
  }

  /** It is not waited for any more. */
  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private look(): void {
    this.timer = undefined;
    const left = this.since + this.limitMs - this.clock.monotonic();
    if (left <= 0 && this.isCatchingUp) {
      this.over(this.limitMs);
      return;
    }
    this.isCatchingUp = left <= 0;
    this.lookIn(left > 0 ? left : catchUpMs);
  }

  private lookIn(ms: number): void {
    this.lookAt = this.clock.monotonic() + ms;
    this.timer = this.clock.after(ms, () => this.look(), { unref: true });
  }
}
