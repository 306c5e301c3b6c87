import { type Clock, systemClock, type Timer } from "../../runtime/base/clock.ts";

/** The system clock, except that a test may skip long waits. Real processes take part, so time itself must pass. */
export class ImpatientClock implements Clock {
  private readonly pending = new Map<Timer, { readonly delayMs: number; readonly end: () => void }>();

  now(): number {
    return systemClock.now();
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  sinceBoot(): number {
    return systemClock.sinceBoot();
  }

  after(delayMs: number, callback: () => void, options?: { unref?: boolean }): Timer {
    const end = () => {
      timer.cancel();
      callback();
    };
    const real = systemClock.after(delayMs, end, options);
    const timer = {
      cancel: () => {
        real.cancel();
        this.pending.delete(timer);
      },
    };
    this.pending.set(timer, { delayMs, end });
    return timer;
  }

  /** Ends pending waits of at least `from` and less than `to` milliseconds. Returns their number. */
  cutShort(from: number, to: number): number {
    const due = [...this.pending.values()].filter(({ delayMs }) => delayMs >= from && delayMs < to);
    for (const { end } of due) end();
    return due.length;
  }
}
