import { type ErrorEntry, user } from "./entry.ts";

/** Errors of `ctx.cache` and of `reads`. */
export const readsCodes = {
  WF_READS_UNDECLARED: user(
    "the handler asks `ctx.cache` for objects that the manifest's `reads` does not list",
    "add it to the manifest's `reads`, or ask the API server by `ctx.kube`",
  ),
  WF_READS_SELECTOR: user(
    "a label selector that the handler passes to `ctx.cache` is invalid",
    "write it in the API's form: `app=web,tier!=cache`, `app in (a,b)`, `app`, `!app`",
  ),
  WF_READS_TOO_LARGE: user(
    "the objects of `reads` take more memory than their function may use",
    "narrow the selectors, read `object: Metadata`, or raise `resources.cache`; it is tried again every 5 minutes",
  ),
  WF_READS_SHARE: user(
    "the `reads` of all functions do not fit into `--cache-limit`, and this function's are furthest beyond an equal share",
    "narrow the selectors, read `object: Metadata`, or raise `--cache-limit`; the function continues by itself once its objects fit",
  ),
  WF_READS_ANSWER: user(
    "one answer of `ctx.cache` is too large for a handler",
    "ask for less at once: by namespace, by labels or by an index",
  ),
  WF_READS_INDEX: user(
    "an object has more values than an index holds, so a list by the index would be incomplete",
    "list by labels, by another namespace or by another index; or exclude the object by the read's selectors",
  ),
  WF_READS_BEHIND: user(
    "a read did not catch up with the event within 30 s, so the attempt was not started",
    "check the state of the read's source in /status; the event is retried",
  ),
} as const satisfies Record<string, ErrorEntry>;
