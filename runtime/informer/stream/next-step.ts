import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ApiError } from "../../kube/api-error.ts";
import type { Ending } from "./failure.ts";

/** Response to an ending. */
export type NextStep =
  /**
   * Resume from the current position: at once, within a second, or after the backoff or the server's Retry-After, whichever is
   * longer.
   */
  | { readonly next: "resume"; readonly wait: "none" | "soon" | "backoff"; readonly atLeastMs?: number }
  /** The resume position is gone or useless: list everything again. `wait` as for `resume`. */
  | { readonly next: "relist"; readonly wait: "none" | "backoff" }
  /**
   * The history is gone and begins at `oldest`, if the server names it. Members with a later position continue; the others list,
   * as for `relist`.
   */
  | { readonly next: "expired"; readonly oldest: ResourceVersion | undefined; readonly wait: "none" | "backoff" }
  /** The server's resourceVersions went back: list again, whatever was received before. */
  | { readonly next: "rewind" }
  | { readonly next: "forbidden" }
  | { readonly next: "missing" }
  | { readonly next: "degraded" }
  /** Read the initial state by LIST instead of WatchList, for an hour. */
  | { readonly next: "list-instead" };

/** State that the source keeps of its earlier sessions. */
export interface SessionHistory {
  /** Duration of the session in milliseconds, and the number of events it read. */
  readonly lastedMs: number;
  readonly events: number;
  /** Phase that was being read: a LIST, the initial events of a WatchList, or live events. */
  readonly phase: "list" | "initial" | "live";
  /** Consecutive poison events after the same resourceVersion. */
  readonly poisons: number;
  /** Consecutive unknown ERROR events. */
  readonly oddErrors: number;
  /**
   * WatchLists since the last complete list that broke off or were answered with something else, this one included; 0 if this one
   * did not.
   */
  readonly brokenInitials: number;
  /** Milliseconds since the last complete list; Infinity if there was no list. */
  readonly sinceListMs: number;
}

/**
 * A stream that delivered nothing and ended sooner than this, in milliseconds, counts as a failure; otherwise a server that
 * closes at once would be hammered.
 */
const shortMs = 1000;
/**
 * Number of poison events after the same resourceVersion, or of consecutive unknown errors, after which the history is considered
 * useless.
 */
const poisonsToRelist = 3;
const oddErrorsToRelist = 5;
/**
 * Number of broken WatchLists after which the server, or a proxy before it, is considered unable to finish one. A LIST costs it
 * no more.
 */
const brokenToList = 3;
/**
 * History that is gone again within this time of a list, in milliseconds, waits for the backoff; otherwise the source would list
 * in a loop.
 */
const soonAfterListMs = 60_000;

/** Decides what to do after a list or a watch ended; the only place that does. */
export function judge(ending: Ending, history: SessionHistory): NextStep {
  // client-go gives up WatchList at the first error that is not transient (`reflector.go`, fallbackToList).
  if (history.brokenInitials >= brokenToList) return { next: "list-instead" };
  switch (ending.type) {
    case "eof":
      if (history.phase === "initial") return { next: "resume", wait: "backoff" };
      return history.lastedMs >= shortMs || history.events > 0
        ? { next: "resume", wait: "soon" }
        : { next: "resume", wait: "backoff" };
    case "closed":
      return ending.by === "rewind" ? { next: "rewind" } : { next: "resume", wait: "none" };
    case "suspended":
      return { next: "resume", wait: "none" };
    case "idle":
      return history.phase === "initial" ? { next: "list-instead" } : { next: "resume", wait: "none" };
    case "overdue":
      return { next: "resume", wait: "none" };
    case "unmarked":
      return { next: "list-instead" };
    case "poison":
      return history.poisons >= poisonsToRelist
        ? { next: "relist", wait: "backoff" }
        : { next: "resume", wait: "backoff" };
    case "oversize":
    case "unsupported":
      return { next: "degraded" };
    case "refused":
      return judgeRefusal(ending, history);
    case "network":
    case "protocol":
    case "internal":
      return { next: "resume", wait: "backoff" };
  }
}

/** Statuses of transient failures, which say nothing about the resourceVersion. */
const passing: ReadonlySet<number> = new Set([401, 429, 500, 502, 503, 504]);

/** Whether an ERROR event is not known to be transient. */
export const isOdd = ({ status }: ApiError): boolean => !passing.has(status);

function judgeRefusal({ error, inStream }: Extract<Ending, { type: "refused" }>, history: SessionHistory): NextStep {
  if (error.expired) {
    if (history.phase !== "live") return { next: "relist", wait: "backoff" };
    const wait = history.sinceListMs < soonAfterListMs ? "backoff" : "none";
    return { next: "expired", oldest: error.oldestResourceVersion, wait };
  }
  const retry: NextStep = {
    next: "resume",
    wait: "backoff",
    ...(error.retryAfterMs === undefined ? {} : { atLeastMs: error.retryAfterMs }),
  };
  switch (error.status) {
    case 400:
    case 422:
      // Does not apply to a stream that began well: there the status means something else.
      if (history.phase === "initial" && !inStream) return { next: "list-instead" };
      break;
    case 403:
      return { next: "forbidden" };
    case 404:
      return { next: "missing" };
    case 405:
      return { next: "degraded" };
  }
  if (inStream && isOdd(error) && history.oddErrors >= oddErrorsToRelist) return { next: "relist", wait: "backoff" };
  return retry;
}
