import { type ErrorDescription, errorFrom } from "../../../sdk/errors.ts";
import { type NumbersReader, parseJson, writeJson } from "../../../sdk/exact-json.ts";
import { type AbortController, DOMException } from "./abort.guest.ts";
import {
  type ErrorText,
  errorText,
  failureText,
  framesBelow,
  requeueOf,
  sandboxError,
  verdictOf,
  withFrames,
} from "./failure.guest.ts";
import { excessOf, noteCall, noteDone, noteFailed } from "./outbox.guest.ts";
import { apply, bare, jsonParse, jsonStringify, PrimordialPromise, slice } from "./primordials.guest.ts";
import { ownTimers } from "./timers.guest.ts";
import { type Unheard, unheardOf } from "./unheard.guest.ts";

/** Calls of one event that may wait for an answer at once. */
const maxOutstandingCalls = 64;
/** Characters of one call's arguments: etcd's limit of an object, and room for the call itself. */
const maxArguments = 1_600_000;
/** The same of a question to the runtime's memory: a reference or a selector. */
const maxAsked = 4000;

/** One attempt at one event, inside the isolate. */
export interface Run extends NumbersReader {
  readonly no: number;
  over: boolean;
  /** Calls that wait for an answer. */
  calls: number;
  /** Characters logged so far. */
  logged: number;
  /** Metrics so far. */
  metrics: number;
  /** Made when the handler first asks for its signal. */
  controller: AbortController | undefined;
  /** Set once the executor has ended the event's time: why. */
  aborted: "deadline" | "cpu" | undefined;
  /** Rejections that nobody had heard when they came, the newest first. */
  unheard: Unheard | undefined;
  /** The entry in which it ended. */
  endedIn: number;
  /** Those that go on and began before and after it, while it goes on. */
  before: Run | undefined;
  after: Run | undefined;
}

interface PendingCall {
  run: Run;
  operation: string;
  frames: string;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

// A list of those that go on: a record by their numbers would cost 0.2 us an event.
let oldest: Run | undefined;
let newest: Run | undefined;
const pending = bare<Record<number, PendingCall>>();
let lastCall = 0;
let latest: Run | undefined;
let current: Run | undefined;
let alive = 0;

/** Runs that go on. */
export const aliveRuns = (): number => alive;

let ended: () => void = () => {};

/** Says what is called at each end of a run. */
export function onEnd(listener: () => void): void {
  ended = listener;
}

/** The run whose handler is being started, else the one started last: whom a `console` line belongs to. */
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

// Whose code an entry runs: of several runs nobody can tell whose a rejection is. The module's own timers count only where
// no run goes on beside them: they would come again with every isolate.
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

/** Whether whoever made a timer is over; undefined where it may be anyone. */
export const isGone = (owner: Run | undefined): boolean => (owner === undefined ? alive === 0 : owner.over);

/** Notes that code of this run goes on in the entry; undefined where it may be anyone's. */
export function touch(run: Run | undefined): void {
  const next = run ?? (alive === 0 ? moduleRun : undefined);
  if (next === undefined) areMany = true;
  else if (toucher === undefined || toucher === moduleRun) toucher = next;
  else if (toucher !== next && next !== moduleRun) {
    // Of several that are all over, none can be harmed.
    if (!hasEndedBefore(toucher) || !hasEndedBefore(next)) areMany = true;
  }
  ownTimers(next);
}

/** Ends the entry's stretches of code whose run is known; what was awaited comes now. */
export const leaveEntry = (): void => ownTimers(soleRun());

/** The run whose code the entry runs, or the last one ran; undefined where it may be anyone's. */
export const soleRun = (): Run | undefined => (areMany ? undefined : (toucher ?? moduleRun));

/** Whether the run was over before the entry that goes on, or went on last. */
export const hasEndedBefore = (run: Run): boolean => run.over && run.endedIn !== entry;

ownTimers(moduleRun);

function link(run: Run): void {
  run.before = newest;
  if (newest === undefined) oldest = run;
  else newest.after = run;
  newest = run;
  alive++;
}

/** Takes it from those that go on. A run that a handler keeps by its context keeps no other. */
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

/** Begins a run, for the time that the handler's first stretch takes. */
export function beginRun(no: number): Run {
  const run = freshRun(no, false);
  link(run);
  touch(run);
  latest = run;
  current = run;
  return run;
}

/** Marks the end of the handler's first stretch. */
export function leaveRun(): void {
  current = undefined;
}

function end(run: Run, kind?: string, error?: ErrorText, retryAfterMs = -1): void {
  if (run.over) return;
  run.over = true;
  run.endedIn = entry;
  unlink(run);
  // Nobody answers them any more.
  if (run.calls > 0) for (const id in pending) if (pending[id]?.run === run) delete pending[id];
  if (kind === undefined || error === undefined) noteDone(run.no);
  else noteFailed(run.no, kind, error, retryAfterMs);
  ended();
}

const noError: ErrorText = { name: "", message: "", stack: "" };

/** Ends a run whose handler returned: well, unless it left a rejection that nobody heard. Of what it returned, only a requeue counts. */
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

/** Ends a run of a batch of which the events at these places, joined by commas, failed. */
export function succeedInPart(run: Run, places: string): void {
  const unheard = unheardOf(run);
  if (unheard === undefined) end(run, "partial", { name: "", message: places, stack: "" });
  else end(run, "failed", unheard);
}

export function fail(run: Run, error: unknown): void {
  if (run.over) return;
  const { kind, retryAfterMs } = verdictOf(error);
  // What a handler throws because its time is over tells where it was waiting.
  if (run.aborted) end(run, run.aborted, errorText(error));
  else end(run, kind, failureText(error), retryAfterMs);
}

/** The event's body is not JSON. */
export const refuse = (run: Run, error: unknown): void => end(run, "unreadable", errorText(error));

/** Ends a run that asked for more than it may, and gives the error to throw at it. */
function overflow(run: Run, message: string, callee: (...args: never[]) => unknown): Error {
  const error = withFrames(sandboxError(message), framesBelow(callee));
  end(run, "output", errorText(error));
  return error;
}

/** Tells a run that its time is over. It may still end by itself before the next drain. */
export function abortRun(no: number, why: "deadline" | "cpu"): void {
  let run = oldest;
  while (run !== undefined && run.no !== no) run = run.after;
  if (run === undefined) return;
  touch(run);
  run.aborted = why;
  run.controller?.abort(new DOMException("the event's time is over", "TimeoutError"));
}

/** What a run waits for: the newest of its calls, and where it was made. */
function waitOf(run: Run): ErrorText {
  let newest: PendingCall | undefined;
  if (run.calls > 0) for (const id in pending) if (pending[id]?.run === run) newest = pending[id];
  return newest
    ? { name: "Waiting", message: newest.operation, stack: newest.frames }
    : { name: "Waiting", message: "", stack: "" };
}

/** Ends what was told to and did not. Called when the isolate is drained. */
export function endAborted(): void {
  let run = oldest;
  while (run !== undefined) {
    if (!run.aborted) run = run.after;
    else {
      end(run, run.aborted, waitOf(run));
      // What begins in its place may have ended others.
      run = oldest;
    }
  }
}

/** Asks the parent; rejects with a typed error that has the caller's stack. */
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
  const frames = framesBelow(callHost);
  run.calls++;
  noteCall(id, run.no, operation, text);
  return new PrimordialPromise((resolve, reject) => {
    pending[id] = { run, operation, frames, resolve, reject };
  });
}

/** Asks the executor, and stands still until it answers: `1` and JSON of the result, or `0` and JSON of an error. */
let ask: (call: number, no: number, operation: string, args: string) => string;

/** Takes the executor's own function for that; what holds it is seen by nobody else. */
export function setAsk(reference: { applySyncPromise: (receiver: undefined, args: unknown[]) => string }): void {
  const { applySyncPromise } = reference;
  ask = (...question) => apply(applySyncPromise, reference, [undefined, question]) as string;
}

/** Asks the parent for what it has in memory: the isolate stands still until the answer is there. Throws a typed error. */
export function askHost(run: Run, operation: string, args: object): unknown {
  if (run.over) throw sandboxError(`${operation} was called after the event's end`);
  const text = jsonStringify(args) ?? "null";
  if (text.length > maxAsked) {
    throw sandboxError(`${operation} would send ${text.length} characters, and it may send ${maxAsked}`);
  }
  const answer = ask(++lastCall, run.no, operation, text);
  const result = parseJson(slice(answer, 1), run);
  if (slice(answer, 0, 1) === "1") return result;
  throw withFrames(errorFrom(result as ErrorDescription), framesBelow(askHost));
}

/** Settles a call with the parent's answer: JSON of the result, or of an error's description. */
export function settleCall(id: number, ok: boolean, text: string): void {
  const call = pending[id];
  if (!call) return;
  delete pending[id];
  touch(call.run);
  call.run.calls--;
  if (ok) call.resolve(parseJson(text, call.run));
  else call.reject(withFrames(errorFrom(jsonParse(text) as ErrorDescription), call.frames));
}
