import type { Clock, Timer } from "../../base/clock.ts";

/**
 * Extra milliseconds to read data that is already waiting, or the next heartbeat (200 ms), in case this process or the machine
 * was suspended.
 */
const catchUpMs = 250;

/** Watches for a recurring event and reports when it has been missing for too long. */
export class SilenceTimer {
  private readonly clock: Clock;
  private readonly over: (waitedMs: number) => void;
  private timer: Timer | undefined;
  private since = 0;
  private limitMs = 0;
  private lookAt = 0;
  private isCatchingUp = false;

  /** `over` is called once when the limit has passed. After that it waits only if `expect` is called again. */
  constructor(clock: Clock, over: (waitedMs: number) => void) {
    this.clock = clock;
    this.over = over;
  }

  /** Records the event, or starts waiting. The next one must occur within `limitMs`. */
  expect(limitMs: number): void {
    this.since = this.clock.monotonic();
    this.limitMs = limitMs;
    this.isCatchingUp = false;
    // One timer serves many calls: when it fires it checks how much time is left.
    if (this.timer && this.lookAt <= this.since + limitMs) return;
    this.timer?.cancel();
    this.lookIn(limitMs);
  }

  /** Stops waiting. */
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
