import { cut } from "../../base/wording.ts";

/** An unhandled rejection, as text. */
export interface Rejection {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** Maximum characters of an error that leave an executor. The guest cuts its own errors to the same lengths. */
const maxName = 200;
const maxMessage = 2000;
const maxStack = 4000;

/**
 * Bound above which a BigInt is not converted to text. The conversion of a very large one would block this thread for seconds.
 */
const manyBits = 2n ** 1024n;
const largeNumber = "a large BigInt";

/** isolated-vm's message for a value that it cannot copy, and the guest's message for the same. */
const uncopied = "An object was thrown from supplied code within isolated-vm";
const noError = "an object that is not an Error";

/**
 * Converts the value with which an entry was rejected. isolated-vm passes on the first unhandled rejection of the isolate, if it
 * is a primitive or an Error of that realm, and appends its own frames to the stack.
 */
export function rejectionOf(error: unknown): Rejection {
  if (!(error instanceof Error)) return { name: "Error", message: textOf(error), stack: "" };
  if (error.message.startsWith(uncopied)) return { name: "Error", message: noError, stack: "" };
  return {
    name: cut(error.name, maxName),
    message: cut(error.message, maxMessage),
    stack: ownStack(error),
  };
}

/** Returns an error's stack without the frames that isolated-vm appends, cut to `maxStack`. */
export const ownStack = ({ stack = "" }: Error): string =>
  cut(stack.split("\n    at (<isolated-vm boundary>)")[0] ?? "", maxStack);

function textOf(value: unknown): string {
  if (typeof value === "bigint" && (value > manyBits || value < -manyBits)) return largeNumber;
  return cut(String(value), maxMessage);
}

/** Returns a load's failure in the format that the guest itself uses. */
export const failureWord = (reason: "thrown" | "unheard", { name, message, stack }: Rejection): string =>
  JSON.stringify([reason, name, message, stack]);
