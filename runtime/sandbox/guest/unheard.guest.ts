import { type ErrorText, errorMark, errorText, markOf } from "./failure.guest.ts";
import { define, PrimordialPromise, promiseThen } from "./primordials.guest.ts";

// An unhandled rejection fails its run, as it would end a Node process, but it may be handled until the run's end. Code that
// handles a promise (`await`, `then` and everything built on them) reads the promise's `constructor`, which is how the guest
// detects it. For the runtime's own promises the run is known. For all other promises V8 reports the first unhandled rejection of
// an entry, after the entry. The executor has only its text, by which a later handler is recognised.

/** A rejection that had no handler when it occurred. `heard` is set once it is handled. */
export interface Unheard {
  heard: boolean;
  readonly text: ErrorText;
  readonly next: Unheard | undefined;
}

/** The part of a run that concerns rejections. */
interface RejectionRun {
  readonly over: boolean;
  /** Newest first. */
  unheard: Unheard | undefined;
}

/**
 * Returns the rejection that fails a run: its first unhandled one, since that is the cause of others. Returns `undefined` if all
 * were handled.
 */
export function unheardOf(run: RejectionRun): ErrorText | undefined {
  let text: ErrorText | undefined;
  for (let one = run.unheard; one; one = one.next) if (!one.heard) text = one.text;
  return text;
}

/** Observes a call's promise and returns it. Its failure fails the run unless it is handled. */
export function watched<T>(run: RejectionRun, promise: Promise<T>): Promise<T> {
  let heard = false;
  let unheard: Unheard | undefined;
  promiseThen(promise, undefined, (error) => {
    if (heard) return;
    unheard = { heard, text: errorText(error), next: run.unheard };
    run.unheard = unheard;
  });
  guardConstructor(promise, () => {
    heard = true;
    if (unheard) unheard.heard = true;
  });
  return promise;
}

interface Suspicion {
  readonly run: RejectionRun;
  readonly unheard: Unheard;
  readonly mark: string;
  readonly next: Suspicion | undefined;
}

/** Rejections reported by V8, of runs that have not ended. */
let suspicions: Suspicion | undefined;
let isLooking = false;
let isGuarded = false;

/** Records a rejection, of an unknown promise, that V8 reported for a run. */
export function suspect(run: RejectionRun, name: string, message: string, stack: string): void {
  run.unheard = { heard: false, text: { name, message, stack }, next: run.unheard };
  let others: Suspicion | undefined;
  for (let one = suspicions; one; one = one.next) if (!one.run.over) others = { ...one, next: others };
  suspicions = { run, unheard: run.unheard, mark: errorMark(message, stack), next: others };
  if (isGuarded) return;
  isGuarded = true;
  guardConstructor(PrimordialPromise.prototype, lookAt);
}

/** Called when a promise is handled. It may be the rejected one. */
function lookAt(promise: Promise<unknown>): void {
  if (suspicions === undefined || isLooking) return;
  isLooking = true;
  try {
    promiseThen(promise, undefined, (error) => {
      const mark = markOf(error);
      for (let one = suspicions; one; one = one.next) if (one.mark === mark) one.unheard.heard = true;
    });
  } catch {
    // The `constructor` of the prototype itself was read, not that of a promise.
  } finally {
    isLooking = false;
  }
}

/** Calls `read` whenever `constructor` is read. The property remains replaceable. */
function guardConstructor(target: Promise<unknown>, read: (self: Promise<unknown>) => void): void {
  define(target, "constructor", {
    get(this: Promise<unknown>) {
      read(this);
      return PrimordialPromise;
    },
    set(this: object, value: unknown) {
      define(this, "constructor", { value, writable: true, enumerable: true, configurable: true });
    },
    configurable: true,
  });
}
