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

// Runs once per isolate, before the handler's bundle. Its functions for the executor are functions of strings: `pump`
// brings work in, `drain` brings results out. They are taken from the global object before the handler could see them.

let handler: ((event: unknown, context: Context) => unknown) | undefined;
let loadFailure = `["missing","Error","",""]`;

/** What `defineHandler` and `defineBatchHandler` leave on a handler, and `defineReconciler` on another. */
const eventsMark = Symbol.for("@watchfire/sdk/handler");
const keysMark = Symbol.for("@watchfire/sdk/reconciler");
/** Which of the two the function's mode has no use for, and which it has. */
let unfitMark = keysMark;
let fitMark = eventsMark;

/** Takes the bundle's default export. */
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

/** Whether it says to be made for the other modes alone. */
const isUnfit = (value: object): boolean =>
  reflectDescriptor(value, unfitMark) !== undefined && reflectDescriptor(value, fitMark) === undefined;

/** By its text, `class Name` or `class{`: the language tells them apart by nothing else. */
function isClass(value: unknown): boolean {
  const text = slice(functionText(value as () => void), 0, 6);
  return text === "class " || text === "class{";
}

/** Takes what the bundle's top level threw. */
function reject(error: unknown): void {
  loadFailure = `["thrown",${errorJson(error)}]`;
}

function start({ no, head, object, metadataAt, metadataEnd, oldObject }: Delivered): void {
  const run = beginRun(no);
  try {
    let event = jsonParse(head) as object;
    const { batch } = event as { readonly batch?: readonly string[] };
    if (batch === undefined) {
      // A key whose object is gone; a Scheduled is about none.
      if (object === "") put(event, "object", undefined);
      // A literal asks no prototype either, and is made 2 us faster than a property is defined.
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

/** Ends a run by the value that its handler gave: of a batch, that may name events that failed. */
function finish(run: Run, batch: readonly string[] | undefined, value: unknown): void {
  try {
    const places = batch === undefined ? "" : failedPlaces(batch, value);
    if (places === "") succeed(run, value);
    else succeedInPart(run, places);
  } catch (error) {
    fail(run, error);
  }
}

/** A property that is parsed only if the handler looks at it. `failed` is called where its text is no JSON. */
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

/** A copy of its own: an event that a handler keeps does not hold on to the text of its whole batch. */
const ownText = (text: string): string => slice(` ${text}`, 1);

/** What a timer or a microtask throws fails the run that began it, if that goes on, as it ends a Node process. */
function stray(error: unknown, owner: Run | undefined = soleRun() ?? likelyRun()): void {
  if (owner && !owner.over) fail(owner, error);
  else noteStray(errorText(error));
}

/**
 * Says whose a rejection is that the last entry left unheard, of the text given. Gives the run's number if that has
 * just ended, and "" for a run that goes on and is judged at its end. It gives "stray" where the run had ended before,
 * and "?" where nobody can tell.
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
 * One batch of work. Its head is JSON, `[now, seed, most, items]`; the texts that items mean lie end to end in those given,
 * and none goes from one into the next. Items: `[0, no, headLength, length, oldLength, metadataAt, metadataEnd]` is an event,
 * `[1, call, ok, length]` answers a call, `[2, no, cpu]` ends an event's time. `oldLength` is -1 where there is no previous
 * object, and `metadataAt` where it is not known where the object's metadata is. Lengths are in UTF-16 units. `most` events
 * may run at once: what has not begun when the entry ends is left. A batch without items is for timers.
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

/** Whether the last pump came to its end: if it was cut off, nobody knows what of its batch has begun. */
let isWhole = true;

let lastWord = "";

/** What there is to tell since the last drain. `again`: what the last one told. `isCut`: lines and metrics alone, since the batch was cut off. */
function drain(again: boolean, isCut = false): string {
  if (isCut) return takeWords();
  if (!isWhole) throw new PrimordialError("the batch was cut off");
  if (again) return lastWord;
  endAborted();
  lastWord = takeOutbox(nextWake(), takeLeft());
  return lastWord;
}

/** Empty once the handler is in place, else JSON of `[why, name, message, stack]`. Takes the bundle's doors away. */
function loaded(): string {
  delete doors.__watchfire_accept;
  delete doors.__watchfire_reject;
  return loadFailure;
}

/** Takes what the function is given, what its handler may not be made for, and the way to ask. Takes the executor's doors away. */
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
