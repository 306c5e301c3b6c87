import { type ErrorDescription, errorFrom } from "../../../sdk/errors.ts";
import { type NumbersReader, parseJson, writeJson } from "../../../sdk/exact-json.ts";
import { type AbortController, DOMException } from "./abort.guest.ts";
import {
  type CapturedStack,
  type ErrorText,
  errorText,
  failureText,
  framesOf,
  requeueOf,
  sandboxError,
  stackBelow,
  verdictOf,
  withFrames,
} from "./failure.guest.ts";
import { excessOf, noteCall, noteDone, noteFailed } from "./outbox.guest.ts";
import { apply, bare, jsonParse, jsonStringify, PrimordialPromise, slice } from "./primordials.guest.ts";
import { ownTimers } from "./timers.guest.ts";
import { type Unheard, unheardOf } from "./unheard.guest.ts";

/** Maximum number of calls of one event that wait for an answer. */
const maxOutstandingCalls = 64;
/** Maximum characters of one call's arguments: etcd's limit for an object, plus room for the rest of the call. */
const maxArguments = 1_600_000;
/** Maximum characters of a blocking call's arguments, which are a reference or a selector. */
const maxAsked = 4000;

/** One attempt at one event, inside the isolate. */
export interface Run extends NumbersReader {
  readonly no: number;
  over: boolean;
  /** Number of calls that wait for an answer. */
  calls: number;
  /** Characters logged so far. */
  logged: number;
  /** Metric samples so far. */
  metrics: number;
  /** Created when the handler first reads its signal. */
  controller: AbortController | undefined;
  /** Set to the reason once the executor has ended the event's time. */
  aborted: "deadline" | "cpu" | undefined;
  /** Rejections that had no handler when they occurred, newest first. */
  unheard: Unheard | undefined;
  /** Number of the entry in which it ended. */
  endedIn: number;
  /** Neighbours in the list of running runs, while it runs. */
  before: Run | undefined;
  after: Run | undefined;
}

interface PendingCall {
  run: Run;
  operation: string;
  captured: CapturedStack;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

// A linked list of the running runs. A record keyed by their numbers would cost 0.2 us per event.
let oldest: Run | undefined;
let newest: Run | undefined;
const pending = bare<Record<number, PendingCall>>();
let lastCall = 0;
let latest: Run | undefined;
let current: Run | undefined;
let alive = 0;

/** Returns the number of running runs. */
export const aliveRuns = (): number => alive;

let ended: () => void = () => {};

/** Sets the function that is called at each end of a run. */
export function onEnd(listener: () => void): void {
  ended = listener;
}

/** Returns the run to which a `console` line is attributed: the one whose handler is being started, else the one started last. */
export const likelyRun = (): Run | undefined => current ?? latest;

const freshRun = (no: number, over: boolean): Run => ({
  no,
  over,
  calls: 0,
  logged: 0,
  metrics: 0,
  controller: undefined,
  aborted: undefined,
  unheard: undefined,
  numbers: undefined,
  endedIn: 0,
  before: undefined,
  after: undefined,
});

// The fields below track whose code an entry runs: if several runs are active in it, a rejection cannot be attributed. The
// module's own timers count only while no run is active. Charging them to runs would not help, since every new isolate starts
// them again.
export const moduleRun = freshRun(0, true);
let entry = 0;
let toucher: Run | undefined;
let areMany = false;

/** Begins an entry. */
export function beginEntry(): void {
  entry++;
  toucher = undefined;
  areMany = false;
}

/** Whether a timer's owner has ended. An `undefined` owner may be any run. */
export const isGone = (owner: Run | undefined): boolean => (owner === undefined ? alive === 0 : owner.over);

/** Records that the entry runs code of this run; `undefined` if it may be any run's. */
export function touch(run: Run | undefined): void {
  const next = run ?? (alive === 0 ? moduleRun : undefined);
  if (next === undefined) areMany = true;
  else if (toucher === undefined || toucher === moduleRun) toucher = next;
  else if (toucher !== next && next !== moduleRun) {
    // If all of several runs have ended, a rejection harms no run.
    if (!hasEndedBefore(toucher) || !hasEndedBefore(next)) areMany = true;
  }
  ownTimers(next);
}

/** Ends the part of the entry whose run is known. Code that continues after an `await` runs next. */
export const leaveEntry = (): void => ownTimers(soleRun());

/** Returns the run whose code the current or last entry runs; `undefined` if it may be any run's. */
export const soleRun = (): Run | undefined => (areMany ? undefined : (toucher ?? moduleRun));

/** Whether the run had ended before the current or last entry. */
export const hasEndedBefore = (run: Run): boolean => run.over && run.endedIn !== entry;

ownTimers(moduleRun);

function link(run: Run): void {
  run.before = newest;
  if (newest === undefined) oldest = run;
  else newest.after = run;
  newest = run;
  alive++;
}

/** Removes it from the list of running runs. Its links are cleared, so that a run kept by a handler keeps no other run alive. */
function unlink(run: Run): void {
  const { before, after } = run;
  if (before === undefined) oldest = after;
  else before.after = after;
  if (after === undefined) newest = before;
  else after.before = before;
  run.before = undefined;
  run.after = undefined;
  alive--;
}

/** Begins a run. It is the current one until the handler's synchronous part returns. */
export function beginRun(no: number): Run {
  const run = freshRun(no, false);
  link(run);
  touch(run);
  latest = run;
  current = run;
  return run;
}

/** Marks the end of the handler's synchronous part. */
export function leaveRun(): void {
  current = undefined;
}

function end(run: Run, kind?: string, error?: ErrorText, retryAfterMs = -1): void {
  if (run.over) return;
  run.over = true;
  run.endedIn = entry;
  unlink(run);
  // Calls of an ended run are not answered.
  if (run.calls > 0) for (const id in pending) if (pending[id]?.run === run) delete pending[id];
  if (kind === undefined || error === undefined) noteDone(run.no);
  else noteFailed(run.no, kind, error, retryAfterMs);
  ended();
}

const noError: ErrorText = { name: "", message: "", stack: "" };

/**
 * Ends a run whose handler returned. It succeeds unless it has an unhandled rejection. The returned value only matters if it
 * requests a requeue.
 */
export function succeed(run: Run, returned: unknown): void {
  const unheard = unheardOf(run);
  if (unheard !== undefined) {
    end(run, "failed", unheard);
    return;
  }
  const requeueMs = requeueOf(returned);
  if (requeueMs < 0) end(run);
  else end(run, "requeue", noError, requeueMs);
}

/** Ends a batch's run in which the events at these indexes, joined by commas, failed. */
export function succeedInPart(run: Run, places: string): void {
  const unheard = unheardOf(run);
  if (unheard === undefined) end(run, "partial", { name: "", message: places, stack: "" });
  else end(run, "failed", unheard);
}

export function fail(run: Run, error: unknown): void {
  if (run.over) return;
  const { kind, retryAfterMs } = verdictOf(error);
  // An error thrown after the run's time is over shows where the handler was waiting.
  if (run.aborted) end(run, run.aborted, errorText(error));
  else end(run, kind, failureText(error), retryAfterMs);
}

/** Ends a run whose event's body is not JSON. */
export const refuse = (run: Run, error: unknown): void => end(run, "unreadable", errorText(error));

/** Ends a run that exceeded a limit. Returns the error to throw at it. */
function overflow(run: Run, message: string, callee: (...args: never[]) => unknown): Error {
  const error = withFrames(sandboxError(message), stackBelow(callee));
  end(run, "output", errorText(error));
  return error;
}

/** Aborts a run because its time is over. It may still end by itself before the next drain. */
export function abortRun(no: number, why: "deadline" | "cpu"): void {
  let run = oldest;
  while (run !== undefined && run.no !== no) run = run.after;
  if (run === undefined) return;
  touch(run);
  run.aborted = why;
  run.controller?.abort(new DOMException("the event's time is over", "TimeoutError"));
}

/** Returns what a run waits for: the operation of its newest call, and the stack of that call. */
function waitOf(run: Run): ErrorText {
  let newest: PendingCall | undefined;
  if (run.calls > 0) for (const id in pending) if (pending[id]?.run === run) newest = pending[id];
  return newest
    ? { name: "Waiting", message: newest.operation, stack: framesOf(newest.captured) }
    : { name: "Waiting", message: "", stack: "" };
}

/** Ends aborted runs that have not ended by themselves. Called when the isolate is drained. */
export function endAborted(): void {
  let run = oldest;
  while (run !== undefined) {
    if (!run.aborted) run = run.after;
    else {
      end(run, run.aborted, waitOf(run));
      // Runs that began in its place may have ended others.
      run = oldest;
    }
  }
}

/** Calls the parent. Rejects with a typed error that has the caller's stack. */
export function callHost(run: Run, operation: string, args: object): Promise<unknown> {
  if (run.over) return PrimordialPromise.reject(sandboxError(`${operation} was called after the event's end`));
  let text: string;
  try {
    text = writeJson(args, run, operation) ?? "null";
  } catch (error) {
    return PrimordialPromise.reject(error);
  }
  if (run.calls >= maxOutstandingCalls) {
    const message = `${run.calls + 1} calls would wait for an answer at once, and ${maxOutstandingCalls} may`;
    throw overflow(run, message, callHost);
  }
  if (text.length > maxArguments) {
    const message = `${operation} would send ${text.length} characters, and a call may send ${maxArguments}`;
    throw overflow(run, message, callHost);
  }
  const excess = excessOf(text.length);
  if (excess !== undefined) {
    const { unit, actual, most } = excess;
    const counted = unit === "characters" && operation === "fetch" ? `${unit}, four for three bytes of a body,` : unit;
    throw overflow(run, `${actual} ${counted} would leave at once with ${operation}, and ${most} may`, callHost);
  }
  const id = ++lastCall;
  const captured = stackBelow(callHost);
  run.calls++;
  noteCall(id, run.no, operation, text);
  return new PrimordialPromise((resolve, reject) => {
    pending[id] = { run, operation, captured, resolve, reject };
  });
}

/** Calls the parent and blocks until the answer: `1` and the result's JSON, or `0` and the error's JSON. */
let ask: (call: number, no: number, operation: string, args: string) => string;

/** Sets the executor's function for blocking calls. The reference that holds it is visible to no other code. */
export function setAsk(reference: { applySyncPromise: (receiver: undefined, args: unknown[]) => string }): void {
  const { applySyncPromise } = reference;
  ask = (...question) => apply(applySyncPromise, reference, [undefined, question]) as string;
}

/** Reads data from the parent's memory, and blocks the isolate until the answer. Throws a typed error. */
export function askHost(run: Run, operation: string, args: object): unknown {
  if (run.over) throw sandboxError(`${operation} was called after the event's end`);
  const text = jsonStringify(args) ?? "null";
  if (text.length > maxAsked) {
    throw sandboxError(`${operation} would send ${text.length} characters, and it may send ${maxAsked}`);
  }
  const answer = ask(++lastCall, run.no, operation, text);
  const result = parseJson(slice(answer, 1), run);
  if (slice(answer, 0, 1) === "1") return result;
  throw withFrames(errorFrom(result as ErrorDescription), stackBelow(askHost));
}

/** Settles a call with the parent's answer: JSON of the result, or of an error's description. */
export function settleCall(id: number, ok: boolean, text: string): void {
  const call = pending[id];
  if (!call) return;
  delete pending[id];
  touch(call.run);
  call.run.calls--;
  if (ok) call.resolve(parseJson(text, call.run));
  else call.reject(withFrames(errorFrom(jsonParse(text) as ErrorDescription), call.captured));
}
