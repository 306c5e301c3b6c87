import { parseJson } from "../../../sdk/exact-json.ts";
import type { Context } from "../../../sdk/index.ts";
import { failedPlaces } from "./batch.guest.ts";
import { createContext, setEnv } from "./context.guest.ts";
import { errorJson, errorText } from "./failure.guest.ts";
import { hardenRealm } from "./harden.guest.ts";
import { installConsole } from "./log.guest.ts";
import { objectOf } from "./object.guest.ts";
import { noteStray, takeOutbox, takeWords } from "./outbox.guest.ts";
import {
  apply,
  define,
  follow,
  functionText,
  jsonParse,
  PrimordialError,
  put,
  reflectDescriptor,
  slice,
} from "./primordials.guest.ts";
import { beginQueued, type Delivered, enqueue, onBegin, takeLeft } from "./queue.guest.ts";
import { seed } from "./random.guest.ts";
import {
  abortRun,
  beginEntry,
  beginRun,
  endAborted,
  fail,
  hasEndedBefore,
  isGone,
  leaveEntry,
  leaveRun,
  likelyRun,
  type Run,
  refuse,
  setAsk,
  settleCall,
  soleRun,
  succeed,
  succeedInPart,
  touch,
} from "./run.guest.ts";
import { fireTimers, nextWake, setClock } from "./timers.guest.ts";
import { suspect } from "./unheard.guest.ts";
import { installWeb } from "./web.guest.ts";

// Runs once per isolate, before the handler's bundle. Its functions for the executor take and return strings: `pump` passes work
// in, `drain` returns results. The executor takes them from the global object before any handler code runs.

let handler: ((event: unknown, context: Context) => unknown) | undefined;
let loadFailure = `["missing","Error","",""]`;

/** Properties by which `defineHandler` and `defineBatchHandler`, or `defineReconciler`, mark a handler. */
const eventsMark = Symbol.for("@watchfire/sdk/handler");
const keysMark = Symbol.for("@watchfire/sdk/reconciler");
/** Mark of handlers that do not fit the function's mode, and mark of those that do. */
let unfitMark = keysMark;
let fitMark = eventsMark;

/** Receives the bundle's default export. */
function accept(value: unknown): void {
  let wrong = "";
  if (typeof value !== "function") wrong = `the default export is of type ${typeof value}, not a function`;
  else if (isClass(value)) wrong = "the default export is a class, which cannot be called as a function";
  if (wrong !== "") loadFailure = `["handler","TypeError","${wrong}",""]`;
  else if (isUnfit(value as object)) loadFailure = `["mode","Error","",""]`;
  else {
    handler = value as never;
    loadFailure = "";
  }
}

/** Whether a handler is marked only for modes other than the function's. */
const isUnfit = (value: object): boolean =>
  reflectDescriptor(value, unfitMark) !== undefined && reflectDescriptor(value, fitMark) === undefined;

/** A class's source text begins with `class Name` or `class{`. The language offers no other way to tell. */
function isClass(value: unknown): boolean {
  const text = slice(functionText(value as () => void), 0, 6);
  return text === "class " || text === "class{";
}

/** Receives an error that the bundle's top level threw. */
function reject(error: unknown): void {
  loadFailure = `["thrown",${errorJson(error)}]`;
}

function start({ no, head, object, metadataAt, metadataEnd, oldObject }: Delivered): void {
  const run = beginRun(no);
  try {
    let event = jsonParse(head) as object;
    const { batch } = event as { readonly batch?: readonly string[] };
    if (batch === undefined) {
      // A reconcile key whose object is gone. A Scheduled event has no object: its text is "null".
      if (object === "") put(event, "object", undefined);
      // An object literal is as safe from a changed prototype as `put`, and 2 us faster than defining a property.
      else if (metadataAt >= 0) event = { ...event, object: objectOf(ownText(object), metadataAt, metadataEnd, run) };
      else if (object !== "null") defineParsed(run, event, "object", object, (error) => refuse(run, error));
      if (oldObject !== undefined) defineParsed(run, event, "oldObject", oldObject, () => {});
    }
    const given = batch === undefined ? event : parsedBatch(run, object);
    const result = apply(handler as never, undefined, [given, createContext(run)]);
    if ((typeof result === "object" && result !== null) || typeof result === "function") {
      follow(
        result,
        (value) => finish(run, batch, value),
        (error) => fail(run, error),
      );
    } else succeed(run, undefined);
  } catch (error) {
    fail(run, error);
  } finally {
    leaveRun();
  }
}

function parsedBatch(run: Run, text: string): unknown {
  try {
    return parseJson(text, run);
  } catch (error) {
    refuse(run, error);
    throw error;
  }
}

/** Ends a run with the value that its handler returned. A batch handler's value may list events that failed. */
function finish(run: Run, batch: readonly string[] | undefined, value: unknown): void {
  try {
    const places = batch === undefined ? "" : failedPlaces(batch, value);
    if (places === "") succeed(run, value);
    else succeedInPart(run, places);
  } catch (error) {
    fail(run, error);
  }
}

/** Defines a property that is parsed when the handler first reads it. `failed` is called if its text is not JSON. */
function defineParsed(run: Run, event: object, key: string, text: string, failed: (error: unknown) => void): void {
  const own = ownText(text);
  const settle = (value: unknown) => put(event, key, value);
  define(event, key, {
    get() {
      let value: unknown;
      try {
        value = parseJson(own, run);
      } catch (error) {
        failed(error);
        throw error;
      }
      settle(value);
      return value;
    },
    set: settle,
    enumerable: true,
    configurable: true,
  });
}

/** Returns an unshared copy, so that an event kept by a handler does not keep the text of its whole batch alive. */
const ownText = (text: string): string => slice(` ${text}`, 1);

/**
 * Handles an error thrown by a timer or microtask, which would end a Node process: fails the run that started it, if that has not
 * ended.
 */
function stray(error: unknown, owner: Run | undefined = soleRun() ?? likelyRun()): void {
  if (owner && !owner.over) fail(owner, error);
  else noteStray(errorText(error));
}

/**
 * Attributes an unhandled rejection of the last entry, given as text. Returns the run's number if that run has just ended; "" if
 * it is still running and is judged at its end; "stray" if it had ended before; "?" if the run is unknown.
 */
function blame(name: string, message: string, stack: string): string {
  const run = soleRun();
  if (run === undefined) return "?";
  if (hasEndedBefore(run)) return "stray";
  if (run.over) return `${run.no}`;
  suspect(run, name, message, stack);
  return "";
}

/**
 * Processes one batch of work. `headText` is JSON: `[now, seed, most, items]`. The items' texts are concatenated in `texts`; no
 * item's text spans two of them. Items:
 *
 * - `[0, no, headLength, length, oldLength, metadataAt, metadataEnd]`: an event. `oldLength` is -1 without a previous object,
 *   `metadataAt` is -1 if the position of the object's metadata is unknown.
 * - `[1, call, ok, length]`: the answer to a call.
 * - `[2, no, cpu]`: the end of an event's time.
 *
 * Lengths are in UTF-16 units. At most `most` events run at once; those that have not begun when the entry ends are left. A batch
 * without items runs the timers.
 */
function pump(headText: string, ...texts: string[]): void {
  isWhole = false;
  lastWord = "";
  beginEntry();
  const head = jsonParse(headText) as [number, string, number, number[][]];
  let text = "";
  let next = 0;
  let at = 0;
  setClock(head[0]);
  if (head[1] !== "") seed(head[1]);
  const items = head[3];
  for (let index = 0; index < items.length; index++) {
    if (at === text.length && next < texts.length) {
      text = texts[next++] as string;
      at = 0;
    }
    const item = items[index] as number[];
    const kind = item[0];
    const id = item[1] as number;
    if (kind === 0) {
      const object = at + (item[2] as number);
      const end = object + (item[3] as number);
      const oldLength = item[4] as number;
      const after = oldLength < 0 ? end : end + oldLength;
      enqueue({
        no: id,
        head: slice(text, at, object),
        object: slice(text, object, end),
        metadataAt: item[5] as number,
        metadataEnd: item[6] as number,
        oldObject: oldLength < 0 ? undefined : slice(text, end, after),
      });
      at = after;
    } else if (kind === 1) {
      const end = at + (item[3] as number);
      settleCall(id, item[2] === 1, slice(text, at, end));
      at = end;
    } else abortRun(id, item[2] === 1 ? "cpu" : "deadline");
  }
  beginQueued(head[2]);
  if (items.length === 0) {
    fireTimers(
      (owner) => isGone(owner as Run | undefined),
      (owner) => touch(owner as Run | undefined),
      (error, owner) => stray(error, owner as Run | undefined),
    );
  }
  leaveEntry();
  isWhole = true;
}

/** Whether the last pump completed. If it was cut off, it is unknown which events of its batch have begun. */
let isWhole = true;

let lastWord = "";

/**
 * Returns what there is to report since the last drain. `again`: returns the last drain's result once more. `isCut`: returns only
 * log lines and metrics, because the batch was cut off.
 */
function drain(again: boolean, isCut = false): string {
  if (isCut) return takeWords();
  if (!isWhole) throw new PrimordialError("the batch was cut off");
  if (again) return lastWord;
  endAborted();
  lastWord = takeOutbox(nextWake(), takeLeft());
  return lastWord;
}

/** Returns "" if the handler is in place, else JSON of `[why, name, message, stack]`. Removes the globals made for the bundle. */
function loaded(): string {
  delete doors.__watchfire_accept;
  delete doors.__watchfire_reject;
  return loadFailure;
}

/**
 * Sets the function's environment, the kind of handlers to refuse, and the function for blocking calls. Removes the global made
 * for the executor.
 */
function begin(envText: string, refused: "events" | "keys", ask: Parameters<typeof setAsk>[0]): void {
  setEnv(jsonParse(envText) as Record<string, string>);
  unfitMark = refused === "events" ? eventsMark : keysMark;
  fitMark = refused === "events" ? keysMark : eventsMark;
  setAsk(ask);
  delete doors.__watchfire_executor;
}

const doors = globalThis as {
  __watchfire_accept?: unknown;
  __watchfire_reject?: unknown;
  __watchfire_executor?: unknown;
};

onBegin(start);
hardenRealm();
installConsole();
installWeb(stray);

const hand = (name: string, value: unknown) => define(globalThis, name, { value, configurable: true });
hand("__watchfire_accept", accept);
hand("__watchfire_reject", reject);
hand("__watchfire_executor", {
  pump,
  drain,
  blame,
  loaded,
  begin,
});
