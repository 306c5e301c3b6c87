import { NotServedError, PermanentError, RetryAfter } from "../../../sdk/errors.ts";
import { RequeueAfter } from "../../../sdk/requeue.ts";
import { cut } from "./cut.guest.ts";
import { captureStack, indexOf, isFiniteNumber, PrimordialError, quote, slice, stringOf } from "./primordials.guest.ts";

/** Maximum characters of an error's parts that leave the isolate. */
const maxName = 200;
const maxMessage = 2000;
const maxStack = 4000;

/** Returns the text of a property that may be missing, not a string, or a getter that throws. */
function textOf(source: object, key: "name" | "message" | "stack", limit: number): string {
  try {
    const value = (source as Record<string, unknown>)[key];
    return typeof value === "string" ? cut(value, limit) : "";
  } catch {
    return "";
  }
}

/** An error as text. */
export interface ErrorText {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** Converts an error to text inside the isolate, so that no code of the handler is reached from outside it. */
export function errorText(error: unknown): ErrorText {
  if ((typeof error === "object" && error !== null) || typeof error === "function") {
    const name = textOf(error, "name", maxName) || "Error";
    const message = textOf(error, "message", maxMessage);
    const stack = textOf(error, "stack", maxStack);
    return { name, message: message === "" && stack === "" ? noError : message, stack };
  }
  let message: string;
  try {
    message = cut(stringOf(error), maxMessage);
  } catch {
    message = "a value that has no text";
  }
  return { name: "Error", message, stack: "" };
}

/** Maximum number of causes of one error that are reported, and of the `errors` of an AggregateError. */
const maxCauses = 5;

/**
 * Returns the text of an error that ends a run or a load. Its stack is followed by its causes and by the errors that it
 * aggregates.
 */
export function failureText(error: unknown): ErrorText {
  const { name, message, stack } = errorText(error);
  let others = "";
  let cause = propertyOf(error, "cause");
  for (let at = 0; at < maxCauses && cause !== undefined && cause !== null; at++) {
    others += `\nCaused by: ${line(cause)}`;
    cause = propertyOf(cause, "cause");
  }
  const errors = propertyOf(error, "errors");
  for (let at = 0; at < maxCauses; at++) {
    const one = propertyOf(errors, at);
    if (one === undefined) break;
    others += `\nAmong its errors: ${line(one)}`;
  }
  if (others === "") return { name, message, stack };
  return { name, message, stack: cut((stack === "" ? `${name}: ${message}` : stack) + others, maxStack) };
}

function line(error: unknown): string {
  const { name, message, stack } = errorText(error);
  return stack === "" ? `${name}: ${message}` : stack;
}

/** Reads a property of an object that may be a proxy, or have a getter that throws. */
function propertyOf(source: unknown, key: PropertyKey): unknown {
  if (typeof source !== "object" || source === null) return undefined;
  try {
    return (source as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
}

/** Returns `"name","message","stack"` as JSON. */
export function errorJson(error: unknown): string {
  const { name, message, stack } = failureText(error);
  return `${quote(name)},${quote(message)},${quote(stack)}`;
}

/** Message for a thrown object without text. isolated-vm's own message for it would not help. */
const noError = "an object that is not an Error";

/** The executor's bound and replacement for a BigInt whose conversion to text would take long (executor/rejection.ts). */
const manyBits = 2n ** 1024n;
const largeNumber = "a large BigInt";

/** Returns a BigInt's digits, or `largeNumber` if there are so many that the conversion takes long. */
export const digitsOf = (number: bigint): string =>
  number > manyBits || number < -manyBits ? largeNumber : stringOf(number);

/** Key by which an error is recognised, both as a value and as the text that left the isolate. */
export const errorMark = (message: string, stack: string): string => `${message}\n${stack}`;
export function markOf(error: unknown): string {
  if ((typeof error === "object" && error !== null) || typeof error === "function") {
    const message = textOf(error, "message", maxMessage);
    const stack = textOf(error, "stack", maxStack);
    return message === "" && stack === "" ? errorMark(noError, "") : errorMark(message, stack);
  }
  if (typeof error === "bigint") return errorMark(digitsOf(error), "");
  try {
    return errorMark(cut(stringOf(error), maxMessage), "");
  } catch {
    return "";
  }
}

/**
 * The delay in milliseconds after an attempt that ended because a kind is not served. It is longer than the first delays of a usual
 * backoff, so that the attempts last until a definition that is being installed is there.
 */
const notServedRetryMs = 30_000;

/** Returns how the handler wants its failure to be treated, and the delay that it asks for in milliseconds, or -1 without one. */
export function verdictOf(error: unknown): { kind: "failed" | "permanent"; retryAfterMs: number } {
  try {
    if (error instanceof PermanentError) return { kind: "permanent", retryAfterMs: -1 };
    if (error instanceof RetryAfter) {
      const { delayMs } = error;
      if (isFiniteNumber(delayMs) && delayMs >= 0) return { kind: "failed", retryAfterMs: delayMs };
    }
    if (error instanceof NotServedError) return { kind: "failed", retryAfterMs: notServedRetryMs };
  } catch {
    // A proxy that throws on access counts as an ordinary failure.
  }
  return { kind: "failed", retryAfterMs: -1 };
}

/** Returns the delay in milliseconds after which the returned value asks for another run; -1 if it does not. */
export function requeueOf(returned: unknown): number {
  try {
    if (returned instanceof RequeueAfter) {
      const { delayMs } = returned;
      if (isFiniteNumber(delayMs) && delayMs >= 0) return delayMs;
    }
  } catch {
    // A proxy that throws on access asks for nothing.
  }
  return -1;
}

/** A captured stack. V8 formats it when it is read, which took 9 % of the isolate's time at one call an event. */
export interface CapturedStack {
  readonly stack: string;
}

/** Captures the current stack below `callee`. */
export function stackBelow(callee: (...args: never[]) => unknown): CapturedStack {
  const holder = { stack: "" };
  captureStack(holder, callee);
  return holder;
}

/** Returns the frames of a captured stack. */
export function framesOf(captured: CapturedStack): string {
  const text = textOf(captured, "stack", maxStack);
  const newline = indexOf(text, "\n");
  return newline < 0 ? "" : slice(text, newline);
}

/** Replaces the stack of an error from the parent with that of the call it answers. */
export function withFrames(error: Error, captured: CapturedStack): Error {
  error.stack = `${error.name}: ${error.message}${framesOf(captured)}`;
  return error;
}

/** Creates an error of the sandbox itself, such as for a limit. */
export const sandboxError = (message: string): Error => new PrimordialError(message);
