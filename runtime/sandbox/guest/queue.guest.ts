import { bare, define, PrimordialPromise, promiseThen } from "./primordials.guest.ts";
import { aliveRuns, leaveEntry, onEnd } from "./run.guest.ts";

/** An event as its batch contains it: JSON texts. */
export interface Delivered {
  readonly no: number;
  readonly head: string;
  readonly object: string;
  /** Position of the metadata in the object's text; negative if unknown. */
  readonly metadataAt: number;
  readonly metadataEnd: number;
  readonly oldObject: string | undefined;
}

// The events of the current entry. When a running event ends, the next one begins in the same entry, so a batch can carry more
// events than may run at once.
let queue = bare<Record<number, Delivered>>();
let queued = 0;
let begun = 0;
/** Maximum number of events that run at once. */
let most = 0;
let start: (event: Delivered) => void = () => {};
let isBeginning = false;
let isDue = false;

/** Own property `constructor`, so that its `then` does not look for one on a prototype. */
const settled = new PrimordialPromise<void>((resolve) => resolve());
define(settled, "constructor", { value: undefined });

/** Sets the function that begins an event. */
export function onBegin(begin: (event: Delivered) => void): void {
  start = begin;
}

/** Adds an event to the queue. */
export function enqueue(event: Delivered): void {
  queue[queued++] = event;
}

/** Begins queued events, with at most `limit` running at once, now and for the rest of the entry. */
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

// Deferred to a microtask: an event can end inside a handler's own call, and another handler must not run on its stack.
onEnd(() => {
  if (isBeginning || isDue || begun === queued) return;
  isDue = true;
  promiseThen(settled, () => {
    proceed();
    leaveEntry();
  });
});

/** Discards the events that have not begun. Returns their number. */
export function takeLeft(): number {
  const left = queued - begun;
  queue = bare();
  queued = 0;
  begun = 0;
  return left;
}
