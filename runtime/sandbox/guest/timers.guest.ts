import { apply, bare, dateNow, PrimordialError } from "./primordials.guest.ts";

/** Maximum number of waiting timers in one isolate: far above legitimate use, and few enough for a linear search. */
const maxTimers = 1000;
/** Minimum delay of a timer in milliseconds, so that a timer cannot spin. */
const minDelayMs = 1;
/** Maximum delay, as in browsers: a signed 32-bit number of milliseconds. Longer delays are reduced to it. */
const maxDelayMs = 2 ** 31 - 1;

interface GuestTimer {
  id: number;
  due: number;
  callback: (...args: unknown[]) => unknown;
  args: unknown[];
  /** Period of an interval; 0 for a timer that fires once. */
  every: number;
  /** The run that created it; `undefined` if several could have. */
  owner: object | undefined;
}

const timers = bare<Record<number, GuestTimer>>();
let count = 0;
let lastId = 0;

let owner: object | undefined;

/** Sets the owner of timers created from now on; `undefined` if it is unknown. */
export function ownTimers(next: object | undefined): void {
  owner = next;
}

// Time inside the isolate. With each pump the executor passes the isolate's age by a monotonic clock. Between two pumps the wall
// clock is added.
let pumpedAt = 0;
let pumpedWall = dateNow();

/** Sets the isolate's clock at the start of a pump, in milliseconds since the isolate was created. */
export function setClock(nowMs: number): void {
  pumpedAt = nowMs;
  pumpedWall = dateNow();
}

/** Returns the whole milliseconds since the isolate was created. The resolution is too coarse to time the machine's caches. */
export function elapsed(): number {
  const since = dateNow() - pumpedWall;
  return pumpedAt + (since > 0 ? since : 0);
}

function add(callback: unknown, delay: unknown, args: unknown[], repeats: boolean): number {
  if (typeof callback !== "function") throw new TypeError("a timer takes a function");
  if (count >= maxTimers) throw new PrimordialError(`a function may have ${maxTimers} timers waiting at once`);
  const wanted = +(delay as number);
  const delayMs = wanted > minDelayMs ? (wanted < maxDelayMs ? wanted : maxDelayMs) : minDelayMs;
  const id = ++lastId;
  timers[id] = { id, due: elapsed() + delayMs, callback: callback as never, args, every: repeats ? delayMs : 0, owner };
  count++;
  return id;
}

function remove(id: unknown): void {
  if (typeof id !== "number" || timers[id] === undefined) return;
  delete timers[id];
  count--;
}

export const setTimeout = (callback: unknown, delay?: unknown, ...args: unknown[]): number =>
  add(callback, delay, args, false);
export const setInterval = (callback: unknown, delay?: unknown, ...args: unknown[]): number =>
  add(callback, delay, args, true);
export const clearTimeout = (id?: unknown): void => remove(id);

/** Returns the milliseconds until the next timer is due; -1 if no timer is set. */
export function nextWake(): number {
  if (count === 0) return -1;
  let soonest = Number.POSITIVE_INFINITY;
  for (const id in timers) {
    const due = (timers[id] as GuestTimer).due;
    if (due < soonest) soonest = due;
  }
  const wait = soonest - elapsed();
  return wait > 0 ? wait : 0;
}

/**
 * Runs the timers that are due, in order of time. If some of their owners are `gone`, it runs only the timers of those, and the
 * others in the next turn. Calls `begun` with each timer's owner, and `failed` with errors that callbacks throw.
 */
export function fireTimers(
  gone: (owner: object | undefined) => boolean,
  begun: (owner: object | undefined) => void,
  failed: (error: unknown, owner: object | undefined) => void,
): void {
  const now = elapsed();
  const last = lastId;
  let areGone = false;
  for (const id in timers) {
    const timer = timers[id] as GuestTimer;
    if (timer.due <= now && gone(timer.owner)) areGone = true;
  }
  for (;;) {
    let next: GuestTimer | undefined;
    for (const id in timers) {
      const timer = timers[id] as GuestTimer;
      // Timers that a callback has just created wait for the next turn.
      if (timer.due > now || timer.id > last || (areGone && !gone(timer.owner))) continue;
      if (next === undefined || timer.due < next.due) next = timer;
    }
    if (next === undefined) return;
    if (next.every > 0) next.due = now + next.every;
    else remove(next.id);
    begun(next.owner);
    try {
      apply(next.callback, undefined, next.args);
    } catch (error) {
      failed(error, next.owner);
    }
  }
}
