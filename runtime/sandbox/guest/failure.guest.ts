import { PermanentError, RetryAfter } from "../../../sdk/errors.ts";
import { RequeueAfter } from "../../../sdk/requeue.ts";
import { cut } from "./cut.guest.ts";
import { captureStack, indexOf, isFiniteNumber, PrimordialError, quote, slice, stringOf } from "./primordials.guest.ts";

/** Characters of an error that leave the isolate. */
const maxName = 200;
const maxMessage = 2000;
const maxStack = 4000;

/** Text of a property that may be missing, of any type, or a getter that throws. */
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

/** What is left of an error that leaves: read here, so that nothing of the handler's is touched outside its isolate. */
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

/** Causes that are told of one error, and errors among its own. */
const maxCauses = 5;

/** The text of an error that ends a run or a load: below its stack those that it names as its causes, or stands for. */
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

/** A property of an object that may be a proxy, or a getter that throws. */
function propertyOf(source: unknown, key: PropertyKey): unknown {
  if (typeof source !== "object" || source === null) return undefined;
  try {
    return (source as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
}

/** `"name","message","stack"` as JSON. */
export function errorJson(error: unknown): string {
  const { name, message, stack } = failureText(error);
  return `${quote(name)},${quote(message)},${quote(stack)}`;
}

/** What is thrown and has no text of its own, as isolated-vm's own words for it would be of no use. */
const noError = "an object that is no Error";

/** The executor's words for a number whose text would take long: see there. */
const manyBits = 2n ** 1024n;
const largeNumber = "a large BigInt";

/** A BigInt's digits, unless there are so many that it takes long. */
export const digitsOf = (number: bigint): string =>
  number > manyBits || number < -manyBits ? largeNumber : stringOf(number);

/** By what an error is known again: as a value, and by the text that left the isolate. */
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

/** What the handler wants done about its failure, and in how many milliseconds where it says so. */
export function verdictOf(error: unknown): { kind: "failed" | "permanent"; retryAfterMs: number } {
  try {
    if (error instanceof PermanentError) return { kind: "permanent", retryAfterMs: -1 };
    if (error instanceof RetryAfter) {
      const { delayMs } = error;
      if (isFiniteNumber(delayMs) && delayMs >= 0) return { kind: "failed", retryAfterMs: delayMs };
    }
  } catch {
    // A proxy that throws when looked at is an ordinary failure.
  }
  return { kind: "failed", retryAfterMs: -1 };
}

/** In how many milliseconds a handler asks to be run again by what it returned; -1 where it does not. */
export function requeueOf(returned: unknown): number {
  try {
    if (returned instanceof RequeueAfter) {
      const { delayMs } = returned;
      if (isFiniteNumber(delayMs) && delayMs >= 0) return delayMs;
    }
  } catch {
    // A proxy that throws when looked at asks for nothing.
  }
  return -1;
}

/** The frames of the caller's stack, below the function given. */
export function framesBelow(callee: (...args: never[]) => unknown): string {
  const holder = { stack: "" };
  captureStack(holder, callee);
  const text = textOf(holder, "stack", maxStack);
  const newline = indexOf(text, "\n");
  return newline < 0 ? "" : slice(text, newline);
}

/** Gives an error that was made on the runtime's side the stack of the call that it answers. */
export function withFrames(error: Error, frames: string): Error {
  error.stack = `${error.name}: ${error.message}${frames}`;
  return error;
}

/** An error of the sandbox's own, such as for a limit. */
export const sandboxError = (message: string): Error => new PrimordialError(message);
