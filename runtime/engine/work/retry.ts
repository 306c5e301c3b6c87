import type { Clock, Random, Timer } from "../../base/clock.ts";
import type { DeliverySettings } from "../../manifest/function.ts";

/** A handler may ask for at most a day; a timer of Node holds 24.8 days. */
const maxAskedMs = 24 * 60 * 60 * 1000;

/** A reconciler may ask for at most a leap year. */
const maxRequeueMs = 366 * maxAskedMs;

/** Retries of objects that failed together are spread over this share of their delay. */
const jitter = 0.2;

/** An interrupted attempt runs again at once, then after a second, doubling to this. */
const maxInterruptedMs = 30_000;

/** Attempts past the manifest's that are granted because the runtime, not the handler, may be why they ended. */
const crashAllowance = 3;

/** Milliseconds until the next attempt; `attempts` have failed. `asked` is the handler's own wish. */
export function retryDelay(
  { initialDelayMs, maxDelayMs, factor }: DeliverySettings["retry"],
  attempts: number,
  asked: number | undefined,
  random: Random,
): number {
  if (asked !== undefined) return Math.min(Math.max(0, asked), maxAskedMs);
  const delay = Math.min(maxDelayMs, initialDelayMs * factor ** (attempts - 1));
  return Math.min(maxDelayMs, delay * (1 + jitter * random()));
}

/** Milliseconds until an attempt that was interrupted `times` in a row runs again. */
export const interruptedDelay = (times: number): number =>
  times <= 1 ? 0 : Math.min(maxInterruptedMs, 1_000 * 2 ** (times - 2));

/** Whether so many begun attempts, with the runtime ending in each, are enough to suspect the event. */
export const isCrashLoop = (attempts: number, { maxAttempts }: DeliverySettings["retry"]): boolean =>
  attempts >= maxAttempts + crashAllowance;

/** Milliseconds after which a handler that asked for it is run again. */
export const requeueDelay = (askedMs: number): number => Math.min(Math.max(0, askedMs), maxRequeueMs);

/**
 * Milliseconds until a time that is on record. Where wall time was set back since, nothing waits longer for that.
 * @param notedAt when what waits for it came, which is no later than the time was noted; epoch milliseconds
 */
export const msUntil = (time: number, notedAt: number, clock: Clock): number => time - Math.max(clock.now(), notedAt);

/**
 * Runs `callback` once, however far away that is: a timer of Node holds 24.8 days.
 * @param afterMs by the monotonic clock
 */
export function afterLong(clock: Clock, afterMs: number, callback: () => void): Timer {
  if (afterMs <= maxAskedMs) return clock.after(afterMs, callback);
  let next = clock.after(maxAskedMs, () => {
    next = afterLong(clock, afterMs - maxAskedMs, callback);
  });
  return { cancel: () => next.cancel() };
}

/** A change waits at most so many times the quiet time, where the object changes on and on. */
const mostTimes = 10;
/** And at most so long, in milliseconds: then it goes to disk, and the position passes it. */
const mostQuietMs = 60_000;

/**
 * How long something is still to wait until it was quiet, in milliseconds; 0 and less where it was.
 * @param debounceMs at most a minute; undefined where nothing waits
 * @param since when the first change came that waits
 * @param last when the last one came
 */
export function quietMs(debounceMs: number | undefined, since: number, last: number, now: number): number {
  if (debounceMs === undefined) return 0;
  return Math.min(last + debounceMs, since + Math.min(mostTimes * debounceMs, mostQuietMs)) - now;
}
