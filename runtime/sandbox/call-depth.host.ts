import type { HostReply } from "./host-calls.ts";

/** Levels of arrays and objects in a call's arguments: far above any Kubernetes object's (its decoder stops at 10,000). */
const maxDepth = 500;

/**
 * Whether JSON is nested deeper than any argument should be. Looked at before it is parsed: four million brackets take V8
 * half a second, as many other characters 30 ms. 4 ns a character.
 */
export function isTooDeep(json: string): boolean {
  if (json.length < maxDepth) return false;
  let depth = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (isText) {
      if (code === 0x5c) at++;
      else if (code === 0x22) isText = false;
    } else if (code === 0x22) isText = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > maxDepth) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}

/** The answer to such a call. */
export const tooDeep = (operation: string): HostReply => ({
  ok: false,
  error: { type: "InvalidError", message: `${operation}: the arguments are nested deeper than ${maxDepth} levels` },
});
