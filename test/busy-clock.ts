import { VirtualClock } from "./virtual-clock.ts";

/** A virtual clock whose monotonic time also advances during work, like that of a real clock. */
export class BusyClock extends VirtualClock {
  /** The longest work without a turn of the event loop, in milliseconds. */
  longest = 0;
  private workedMs = 0;
  private stretch = 0;

  override monotonic(): number {
    return super.monotonic() + this.workedMs;
  }

  override after(delayMs: number, callback: () => void) {
    return super.after(delayMs, () => {
      this.stretch = 0;
      callback();
    });
  }

  work(ms: number): void {
    this.workedMs += ms;
    this.stretch += ms;
    this.longest = Math.max(this.longest, this.stretch);
  }
}

/** A clock on which each reading takes a millisecond, so that work takes time. */
export class WorkingClock extends VirtualClock {
  private looks = 0;

  override monotonic(): number {
    return super.monotonic() + this.looks++;
  }
}
