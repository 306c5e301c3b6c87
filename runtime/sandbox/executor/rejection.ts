import { cut } from "../../base/wording.ts";

/** A rejection that nobody heard, as text. */
export interface Rejection {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/** Characters of an error that leave an executor, as the guest itself cuts them. */
const maxName = 200;
const maxMessage = 2000;
const maxStack = 4000;

/** Of a number with more digits than anybody reads the text takes seconds, in which this thread would serve nobody. */
const manyBits = 2n ** 1024n;
const largeNumber = "a large BigInt";

/** What isolated-vm says of a value that it cannot copy, and the guest's word for the same. */
const uncopied = "An object was thrown from supplied code within isolated-vm";
const noError = "an object that is no Error";

/**
 * Reads the value that an entry was rejected with. isolated-vm copies the first promise there that was rejected and not
 * heard, if it is a primitive or an Error of this realm. It adds the frames of its own making to the stack.
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

/** An error's stack as far as it leaves an executor: without the frames that isolated-vm adds, and no longer than others. */
export const ownStack = ({ stack = "" }: Error): string =>
  cut(stack.split("\n    at (<isolated-vm boundary>)")[0] ?? "", maxStack);

function textOf(value: unknown): string {
  if (typeof value === "bigint" && (value > manyBits || value < -manyBits)) return largeNumber;
  return cut(String(value), maxMessage);
}

/** A load's failure in the form of the guest's own word for it. */
export const failureWord = (reason: "thrown" | "unheard", { name, message, stack }: Rejection): string =>
  JSON.stringify([reason, name, message, stack]);
