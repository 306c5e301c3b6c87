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
    // Whole milliseconds, as Date gives them.
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

  /** How many timers wait. */
  get timers(): number {
    return this.pending.size;
  }

  /** The machine sleeps for `ms`: wall time goes on, the monotonic clock and its timers stand still, as on Linux. */
  suspend(ms: number): void {
    this.epoch += ms;
    this.slept += ms;
  }

  /** Somebody sets wall time, by so much forward or back. */
  step(ms: number): void {
    this.epoch += ms;
  }

  /** Moves on by `ms`, firing what falls due, and lets promise reactions run before and after each timer. */
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

  /** Lets what is under way go on until nothing does but timers. */
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

/** Lets pending promise reactions and immediates run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
