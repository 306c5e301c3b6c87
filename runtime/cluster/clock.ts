/** A pending timer. */
export interface Timer {
  cancel(): void;
}

/** Source of time, injected so that tests can pass a virtual one. All durations are milliseconds. */
export interface Clock {
  /** Wall time, milliseconds since the epoch. */
  now(): number;
  /** Monotonic time, for measuring durations. */
  monotonic(): number;
  /** Runs `callback` once after `delayMs`. The timer keeps the process alive unless `unref` is set. */
  after(delayMs: number, callback: () => void, options?: { unref?: boolean }): Timer;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs);
    if (options?.unref) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
