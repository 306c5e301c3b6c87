import { bare, define, PrimordialPromise, promiseThen } from "./primordials.guest.ts";
import { aliveRuns, leaveEntry, onEnd } from "./run.guest.ts";

/** An event as its batch has it: texts of JSON. */
export interface Delivered {
  readonly no: number;
  readonly head: string;
  readonly object: string;
  /** Where the object's metadata is in it; below 0 where that is not known. */
  readonly metadataAt: number;
  readonly metadataEnd: number;
  readonly oldObject: string | undefined;
}

// The events of the entry that goes on. The next one begins when one that runs has ended, in the same entry. So a batch carries
// more events than may run at once.
let queue = bare<Record<number, Delivered>>();
let queued = 0;
let begun = 0;
/** Events that may run at once. */
let most = 0;
let start: (event: Delivered) => void = () => {};
let isBeginning = false;
let isDue = false;

/** Its `then` asks no prototype for a constructor. */
const settled = new PrimordialPromise<void>((resolve) => resolve());
define(settled, "constructor", { value: undefined });

/** Says how events begin. */
export function onBegin(begin: (event: Delivered) => void): void {
  start = begin;
}

/** Adds an event to those that wait. */
export function enqueue(event: Delivered): void {
  queue[queued++] = event;
}

/** Begins what waits, with at most `limit` events that run at once, now and for the rest of the entry. */
export function beginQueued(limit: number): void {
  most = limit;
  proceed();
}

function proceed(): void {
  isDue = false;
  isBeginning = true;
  while (begun < queued && aliveRuns() < most) start(queue[begun++] as Delivered);
  isBeginning = false;
}

// Never at once: the end may come from within a handler's own call, and another handler does not run on its stack.
onEnd(() => {
  if (isBeginning || isDue || begun === queued) return;
  isDue = true;
  promiseThen(settled, () => {
    proceed();
    leaveEntry();
  });
});

/** Forgets what has not begun, and gives how many events those are. */
export function takeLeft(): number {
  const left = queued - begun;
  queue = bare();
  queued = 0;
  begun = 0;
  return left;
}
