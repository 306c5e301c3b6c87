import type { Clock, Timer } from "../../base/clock.ts";

/**
 * Minimum interval of writes, in milliseconds. etcd keeps each version of an object for minutes, so a busy runtime costs it one
 * version every five seconds.
 */
const lazyMs = 5_000;
/** Minimum interval while a caller waits. */
const soonMs = 1_000;

interface FlushWaiter {
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Writes changes with a delay: at most once in five seconds, or once a second while a caller waits. A failed write is retried
 * after the same interval, and callers continue to wait.
 */
export class WriteBehind {
  private readonly clock: Clock;
  private readonly write: () => Promise<void>;
  private readonly failed: (error: unknown) => "again" | "never";
  private timer: { readonly at: number; readonly timer: Timer } | undefined;
  private running: Promise<void> | undefined;
  private waiters: FlushWaiter[] = [];
  private changed = false;
  private stopped = false;
  private lastAt = Number.NEGATIVE_INFINITY;
  private failingSince: number | undefined;

  /** `failed`: called after each failure. Returns whether another attempt can help. */
  constructor(clock: Clock, write: () => Promise<void>, failed: (error: unknown) => "again" | "never") {
    this.clock = clock;
    this.write = write;
    this.failed = failed;
  }

  /** How long writes have been failing, in milliseconds. 0 if the last one succeeded. */
  get failingMs(): number {
    return this.failingSince === undefined ? 0 : this.clock.monotonic() - this.failingSince;
  }

  /** Schedules a write. */
  touch(): void {
    this.changed = true;
    this.within(lazyMs);
  }

  /** Resolves once everything changed so far is written. */
  sync(): Promise<void> {
    if (!this.changed && !this.running) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.waiters.push({ resolve, reject });
      this.changed = true;
      this.within(soonMs);
    });
  }

  /** Starts no further write. Resolves once no write is under way. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.timer.cancel();
    await this.running;
  }

  private within(pauseMs: number): void {
    if (this.stopped || this.running) return;
    const at = Math.max(this.lastAt + pauseMs, this.clock.monotonic());
    if (this.timer && this.timer.at <= at) return;
    this.timer?.timer.cancel();
    const timer = this.clock.after(Math.max(0, at - this.clock.monotonic()), () => {
      this.timer = undefined;
      this.running = this.run();
    });
    this.timer = { at, timer };
  }

  private async run(): Promise<void> {
    const waiters = this.waiters.splice(0);
    this.changed = false;
    this.lastAt = this.clock.monotonic();
    try {
      await this.write();
      this.failingSince = undefined;
      for (const { resolve } of waiters) resolve();
    } catch (error) {
      this.failingSince ??= this.clock.monotonic();
      this.changed = true;
      if (this.failed(error) === "again") this.waiters.unshift(...waiters);
      else {
        this.stopped = true;
        for (const { reject } of waiters) reject(error);
      }
    }
    this.running = undefined;
    if (this.changed) this.within(this.waiters.length > 0 ? soonMs : lazyMs);
  }
}
