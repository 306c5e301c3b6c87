import type { HostReply } from "../host-calls.ts";

/** Maximum nesting of a call's arguments: far above that of any Kubernetes object (its decoder stops at 10,000). */
const maxDepth = 500;
/**
 * Maximum number of values in a call's arguments: those of a CustomResourceDefinition of 700 KB, and a margin. Parsing and
 * writing as many different names takes 45 ms, or 120 ms if numbers of 16 digits are among them. It blocks the parent's event
 * loop.
 */
const maxValues = 40_000;

/** Operations whose arguments hold an object, a body or a value. Those of the others are names and selectors, each of which has its bound. */
const hasBody = /^(?:kube\.(?:create|update|patch|apply)|events\.emit$|fetch$|state\.set$)/;
/** Characters of the arguments of the others, with room for all of them at their bounds, escaped. */
const mostOfNames = 64 * 1024;

/** Returns the fault in the length or the shape of a call's JSON; undefined if it can be read. */
export function callFault(operation: string, json: string): string | undefined {
  if (json.length > mostOfNames && !hasBody.test(operation))
    return `the arguments have more than ${mostOfNames} characters`;
  const fault = shapeFault(json, maxDepth, maxValues);
  return fault && `the arguments ${fault}`;
}

/**
 * Returns what is wrong with the shape of a JSON text, or `undefined` if it can be parsed. Checked before parsing: V8 takes half
 * a second for four million brackets, and 30 ms for as many other characters. This check takes 4 ns per character.
 */
export function shapeFault(json: string, maxDepth: number, maxValues: number): string | undefined {
  if (json.length < maxDepth) return undefined;
  let depth = 0;
  let values = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (isText) {
      if (code === 0x5c) at++;
      else if (code === 0x22) isText = false;
    } else if (code === 0x22) isText = true;
    else if (code === 0x2c) values++;
    else if (code === 0x5b || code === 0x7b) {
      values++;
      if (++depth > maxDepth) return `are nested deeper than ${maxDepth} levels`;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return values > maxValues ? `hold more than ${maxValues} values` : undefined;
}

/** Returns the answer to a call with a malformed shape. */
export const misshapen = (operation: string, fault: string): HostReply => ({
  ok: false,
  error: { type: "InvalidError", message: `${operation}: ${fault}` },
});
