import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ApiError } from "../../kube/api-error.ts";
import type { Ending } from "./failure.ts";

/** What follows from an ending. */
export type NextStep =
  /** Resume where we were: at once, within a second, or after the backoff or what the server asked for, if longer. */
  | { readonly next: "resume"; readonly wait: "none" | "soon" | "backoff"; readonly atLeastMs?: number }
  /** What we resume from is gone, or of no use: list everything again. `wait` as above. */
  | { readonly next: "relist"; readonly wait: "none" | "backoff" }
  /** History is gone; it begins at `oldest`, where the server says so. Who stands further on goes on; else as `relist`. */
  | { readonly next: "expired"; readonly oldest: ResourceVersion | undefined; readonly wait: "none" | "backoff" }
  /** The server's resourceVersions went back: list anew, whatever was received before. */
  | { readonly next: "rewind" }
  | { readonly next: "forbidden" }
  | { readonly next: "missing" }
  | { readonly next: "degraded" }
  /** Read the initial state by LIST instead of WatchList, for an hour. */
  | { readonly next: "list-instead" };

/** What the source remembers of the sessions before. */
export interface SessionHistory {
  /** Milliseconds that the session lasted, and the events it read. */
  readonly lastedMs: number;
  readonly events: number;
  /** What was being read: a LIST, the initial events of a WatchList, or live events. */
  readonly phase: "list" | "initial" | "live";
  /** Poison events in a row that came after one resourceVersion. */
  readonly poisons: number;
  /** Unknown ERROR events in a row. */
  readonly oddErrors: number;
  /** WatchLists since the last complete list that broke off or were answered with something else, this one included; 0 where it did not. */
  readonly brokenInitials: number;
  /** Milliseconds since the last complete list; Infinity where there was none. */
  readonly sinceListMs: number;
}

/** A stream shorter than this that brought nothing is a failure, or a server that closes at once would be hammered. */
const shortMs = 1000;
/** So many poison events after one resourceVersion, or odd errors in a row: the history there is of no use. */
const poisonsToRelist = 3;
const oddErrorsToRelist = 5;
/** So many WatchLists that broke off: the server, or what stands before it, does not bring one to its end. A LIST costs it no more. */
const brokenToList = 3;
/** History that is gone again so soon after a list would make us list in a loop. */
const soonAfterListMs = 60_000;

/** The one place that decides what to do when a list or a watch ended. */
export function judge(ending: Ending, history: SessionHistory): NextStep {
  // client-go gives WatchList up at the first error that does not pass (`reflector.go`, fallbackToList).
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

/** What servers answer in their ordinary troubles: it passes, and says nothing of the resourceVersion. */
const passing: ReadonlySet<number> = new Set([401, 429, 500, 502, 503, 504]);

/** Whether an ERROR event is of no kind that is known to pass. */
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
      // Not for a stream that began well: there it says something else.
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
