import { type ErrorText, errorMark, errorText, markOf } from "./failure.guest.ts";
import { define, PrimordialPromise, promiseThen } from "./primordials.guest.ts";

// A rejection that nobody hears fails its run, as it ends a Node process; but it has until the run's end to be heard.
// Whoever hears a promise (`await`, `then` and all that is made of them) asks it for its `constructor`: so the guest
// sees it. Of the runtime's own promises it knows whose they are. V8 tells the first of all others that an entry
// leaves, after the entry. The executor has its text alone, and by that its hearer is known.

/** A rejection that nobody has heard so far. */
export interface Unheard {
  heard: boolean;
  readonly text: ErrorText;
  readonly next: Unheard | undefined;
}

/** A run, as far as rejections matter. */
interface RejectionRun {
  readonly over: boolean;
  /** The newest first. */
  unheard: Unheard | undefined;
}

/** Of a run: the rejection that fails it; undefined where all were heard. The first is the cause of others. */
export function unheardOf(run: RejectionRun): ErrorText | undefined {
  let text: ErrorText | undefined;
  for (let one = run.unheard; one; one = one.next) if (!one.heard) text = one.text;
  return text;
}

/** Watches a call's promise, and gives it back: its failure matters unless somebody hears it. */
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

/** What V8 told of, in runs that are not over. */
let suspicions: Suspicion | undefined;
let isLooking = false;
let isGuarded = false;

/** Notes that a run left this rejection of a promise that is not known. */
export function suspect(run: RejectionRun, name: string, message: string, stack: string): void {
  run.unheard = { heard: false, text: { name, message, stack }, next: run.unheard };
  let others: Suspicion | undefined;
  for (let one = suspicions; one; one = one.next) if (!one.run.over) others = { ...one, next: others };
  suspicions = { run, unheard: run.unheard, mark: errorMark(message, stack), next: others };
  if (isGuarded) return;
  isGuarded = true;
  guardConstructor(PrimordialPromise.prototype, lookAt);
}

/** Somebody hears this promise: perhaps it is the one. */
function lookAt(promise: Promise<unknown>): void {
  if (suspicions === undefined || isLooking) return;
  isLooking = true;
  try {
    promiseThen(promise, undefined, (error) => {
      const mark = markOf(error);
      for (let one = suspicions; one; one = one.next) if (one.mark === mark) one.unheard.heard = true;
    });
  } catch {
    // The prototype itself was asked, not a promise.
  } finally {
    isLooking = false;
  }
}

/** Calls back when `constructor` is read; it can be replaced as ever. */
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
