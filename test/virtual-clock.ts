import type { Clock, Timer } from "../runtime/base/clock.ts";

interface Pending {
  at: number;
  sequence: number;
  callback: () => void;
}

/** A clock that moves only on the test's command. Timers fire in the order of their time, then of their creation. */
export class VirtualClock implements Clock {
  private time = 0;
  private sequence = 0;
  private readonly pending = new Set<Pending>();
  private epoch: number;
  private slept = 0;

  constructor(epoch = Date.UTC(2026, 0, 1)) {
    this.epoch = epoch;
  }

  now(): number {
    // Whole milliseconds, like Date.
    return Math.floor(this.epoch + this.time);
  }

  monotonic(): number {
    return this.time;
  }

  sinceBoot(): number {
    return this.time + this.slept;
  }

  after(delayMs: number, callback: () => void): Timer {
    const entry: Pending = { at: this.time + Math.max(0, delayMs), sequence: this.sequence++, callback };
    this.pending.add(entry);
    return { cancel: () => this.pending.delete(entry) };
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.pending.size;
  }

  /**
   * Simulates a suspended machine for `ms`: wall time advances, but the monotonic clock and its timers do not, as on Linux.
   */
  suspend(ms: number): void {
    this.epoch += ms;
    this.slept += ms;
  }

  /** Moves wall time forward or back, as when somebody sets the clock. */
  step(ms: number): void {
    this.epoch += ms;
  }

  /** Advances by `ms` and fires the due timers. Promise reactions run before and after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await this.quiet();
    for (let next = this.next(end); next; next = this.next(end)) {
      this.pending.delete(next);
      this.time = Math.max(this.time, next.at);
      next.callback();
      await this.quiet();
    }
    this.time = end;
    await this.quiet();
  }

  /** Runs pending work until only timers are left. */
  quiet(): Promise<void> {
    return settle();
  }

  private next(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const entry of this.pending) {
      if (entry.at > end) continue;
      if (!first || entry.at < first.at || (entry.at === first.at && entry.sequence < first.sequence)) first = entry;
    }
    return first;
  }
}

/** Runs pending promise reactions and immediates. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
