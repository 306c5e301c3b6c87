import { uptime } from "node:os";

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

/** The source of time that every component receives. Tests pass a virtual one. All durations are in milliseconds. */
export interface Clock {
  /** Wall time in milliseconds since the epoch. It can be set: only for times that people read, or that outlive the process. */
  now(): number;
  /** Monotonic time in milliseconds, for measuring and waiting. */
  monotonic(): number;
  /**
   * Milliseconds since the machine started, including the time that it slept, with a resolution of 10 ms. Unlike wall time it
   * cannot be set. Reading it from the system takes 10 us.
   */
  sinceBoot(): number;
  /** Runs `callback` once after `delayMs`. The timer keeps the process alive unless `unref` is set. */
  after(delayMs: number, callback: () => void, options?: { unref?: boolean }): Timer;
}

/** A source of random numbers in [0, 1), for jitter. Tests pass a seeded one. */
export type Random = () => number;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // /proc/uptime on Linux, which is CLOCK_BOOTTIME (libuv `uv_uptime`).
  sinceBoot: () => uptime() * 1000,
  after(delayMs, callback, options) {
    const timer = setTimeout(callback, delayMs);
    if (options?.unref) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Resolves after `delayMs`, or rejects with the signal's reason as soon as it aborts. Leaves no timer or listener behind. */
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
