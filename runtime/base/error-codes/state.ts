import { type ErrorEntry, user } from "./entry.ts";

/** Errors of `ctx.state`. */
export const stateCodes = {
  WF_STATE_FULL: user(
    "the entries of a function's own state would take more room than it may use",
    "delete entries that are no longer needed, store less in each, or raise `resources.state`; each entry counts its key, its JSON and 32 bytes",
  ),
  WF_STATE_VALUE: user(
    "a value for a function's own state is not one that JSON can hold",
    "store texts, finite numbers, true, false, null, arrays and plain objects",
  ),
} as const satisfies Record<string, ErrorEntry>;
