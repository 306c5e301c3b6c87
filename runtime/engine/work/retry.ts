import type { Clock, Random } from "../../base/clock.ts";
import type { DeliverySettings } from "../../manifest/function.ts";
import type { HandlerError } from "../delivery/delivery.ts";

/** The longest delay of a retry that a handler may ask for: a day. */
const maxAskedMs = 24 * 60 * 60 * 1000;

/** The longest delay that a reconciler may ask for: a leap year. */
const maxRequeueMs = 366 * maxAskedMs;

/** The share of a delay over which retries of objects that failed together are spread. */
const jitter = 0.2;

/** The longest delay of an interrupted attempt. It runs again at once, then after a second, then after twice that, and so on. */
const maxInterruptedMs = 30_000;

/** The number of attempts beyond the manifest's, granted because the runtime, not the handler, may have caused their end. */
const crashAllowance = 3;

/** Returns the milliseconds until the next attempt after `attempts` failures. `asked` is the handler's own request. */
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

/** Returns the milliseconds until an attempt that was interrupted `times` in a row runs again. */
export const interruptedDelay = (times: number): number =>
  times <= 1 ? 0 : Math.min(maxInterruptedMs, 1_000 * 2 ** (times - 2));

/** Whether the runtime ended in so many attempts that the event is suspected to be the cause. */
export const isCrashLoop = (attempts: number, { maxAttempts }: DeliverySettings["retry"]): boolean =>
  attempts >= maxAttempts + crashAllowance;

/** Returns the milliseconds until a requested run. */
export const requeueDelay = (askedMs: number): number => Math.min(Math.max(0, askedMs), maxRequeueMs);

/**
 * Returns the milliseconds until a stored time. If wall time was set back since, the wait does not become longer.
 * @param notedAt when the waiting item was received, which is no later than the time was stored; epoch milliseconds
 */
export const msUntil = (time: number, notedAt: number, clock: Clock): number => time - Math.max(clock.now(), notedAt);

/** The longest wait of a change whose object keeps changing, as a multiple of the debounce. */
const mostTimes = 10;
/** The longest wait in milliseconds. After that the event goes to disk, and the checkpoint passes it. */
const mostDebounceMs = 60_000;

/**
 * Returns how long to wait until the object has not changed for the debounce, in milliseconds; 0 or less if it has not.
 * @param debounceMs at most a minute; `undefined` for no wait
 * @param since the arrival of the first waiting change
 * @param last the arrival of the last one
 */
export function debounceWaitMs(debounceMs: number | undefined, since: number, last: number, now: number): number {
  if (debounceMs === undefined) return 0;
  return Math.min(last + debounceMs, since + Math.min(mostTimes * debounceMs, mostDebounceMs)) - now;
}

/** The error of an event or key that was given up although no attempt at it failed by itself. */
export const crashLoopError = (attempts: number): HandlerError => ({
  name: "CrashLoop",
  message: `the runtime ended during each of ${attempts} attempts at this event`,
  stack: "",
  code: "WF_DISPATCH_CRASH_LOOP",
});
