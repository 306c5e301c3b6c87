import { uptime } from "node:os";

/** A pending timer; opaque to its holder. */
export interface Timer {
  cancel(): void;
}

/**
 * Time, as every room receives it: tests pass a virtual one.
 * All durations are milliseconds.
 */
export interface Clock {
  /** Wall time, milliseconds since the epoch; only for stamps a person reads. */
  now(): number;
  /** Monotonic time in milliseconds; the one to measure and to wait by. */
  monotonic(): number;
  /**
   * Milliseconds since the machine started, the time that it slept included, to 10 ms. Nobody sets it, as wall time may be
   * set. It is read from the system, which takes 10 us.
   */
  sinceBoot(): number;
  /** Runs `callback` once after `delayMs`. The timer keeps the process alive unless `unref` is set. */
  after(delayMs: number, callback: () => void, options?: { unref?: boolean }): Timer;
}

/** A source of randomness in [0, 1), for jitter; tests pass a seeded one. */
export type Random = () => number;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // On Linux /proc/uptime, which is CLOCK_BOOTTIME (libuv `uv_uptime`).
  sinceBoot: () => uptime() * 1000,
  after(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs);
    if (options?.unref) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/**
 * Resolves after `delayMs`, or rejects with the signal's reason as soon as it aborts.
 * Leaves neither timer nor listener behind.
 */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
