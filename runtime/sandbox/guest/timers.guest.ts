import { apply, bare, dateNow, PrimordialError } from "./primordials.guest.ts";

/** Timers that may wait at once in one isolate: far above honest use, low enough to search through. */
const maxTimers = 1000;
/** Of `setInterval`, and of any timer: a shorter delay counts as this, so that a timer cannot spin. Milliseconds. */
const minDelayMs = 1;
/** Delays above are cut, as in browsers (a signed 32-bit number of milliseconds). */
const maxDelayMs = 2 ** 31 - 1;

interface GuestTimer {
  id: number;
  due: number;
  callback: (...args: unknown[]) => unknown;
  args: unknown[];
  /** Of an interval; 0 for a timer that fires once. */
  every: number;
  /** Whose entry made it; undefined where several could have. */
  owner: object | undefined;
}

const timers = bare<Record<number, GuestTimer>>();
let count = 0;
let lastId = 0;

let owner: object | undefined;

/** Says whose the timers are that are made from now on; undefined where nobody can tell. */
export function ownTimers(next: object | undefined): void {
  owner = next;
}

// Time inside the isolate. The executor says with each pump how long the isolate has lived, by a clock that never
// jumps. Between two pumps the wall clock fills in.
let pumpedAt = 0;
let pumpedWall = dateNow();

/** Sets the isolate's clock, at the start of a pump. Milliseconds since the isolate began. */
export function setClock(nowMs: number): void {
  pumpedAt = nowMs;
  pumpedWall = dateNow();
}

/** Milliseconds since the isolate began, in whole milliseconds: too coarse to time the machine's caches. */
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

/** Milliseconds until the next timer is due; -1 where none waits. */
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
 * Runs the timers that are due, in order of time. Where some are of owners that are `gone`, it runs these alone, and
 * the others with the next turn. `begun` hears whose it is, and `failed` gets what a callback throws.
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
      // Those that a callback has just made wait for the next turn.
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
