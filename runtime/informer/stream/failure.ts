import { WatchfireError } from "../../base/errors.ts";
import { ApiError } from "../../kube/api-error.ts";
import { networkFailure } from "../../kube/http-transport.ts";
import { BadList } from "../scan/list-splitter.ts";
import { NotJson, OversizeValue } from "../scan/value-reader.ts";

/**
 * How a list, or one connection of a watch, ended. A closed set, so that what follows from each is decided in one
 * place (`next-step.ts`) and none is forgotten.
 */
export type Ending =
  /** The server closed the stream as it may; `truncated` where the last event was cut in half. */
  | { readonly type: "eof"; readonly truncated: boolean }
  /**
   * We closed it: to stop, or because another serves those whom it served. Or the cluster's state was seen to have gone
   * back, or the right to watch seems to be revoked.
   */
  | { readonly type: "closed"; readonly by: "stop" | "join" | "rewind" | "revoked" }
  /** Silence past the deadline, or past the time we asked the server to end at. */
  | { readonly type: "idle" }
  | { readonly type: "overdue" }
  /** The machine slept or the process stood still, so that nothing is known of the connection. */
  | { readonly type: "suspended" }
  /** The initial events did not end in time. */
  | { readonly type: "unmarked" }
  | { readonly type: "network"; readonly message: string }
  /** An error status, or an ERROR event inside the stream. */
  | { readonly type: "refused"; readonly error: ApiError; readonly inStream: boolean }
  /** Something other than an API server answered. */
  | { readonly type: "protocol"; readonly message: string }
  /** An event that no rule of the protocol allows; never skipped. */
  | { readonly type: "poison"; readonly message: string }
  | { readonly type: "oversize"; readonly limit: number }
  /** Objects of another kind, or without a resourceVersion: watching them cannot work. */
  | { readonly type: "unsupported"; readonly message: string }
  /** A fault of our own, such as a subscriber that threw: never swallowed, and the event is read again. */
  | { readonly type: "internal"; readonly message: string };

/** An ending thrown from within a list or an event's handling. */
export class SessionEnded extends Error {
  override readonly name = "Ended";
  readonly ending: Ending;

  constructor(ending: Ending) {
    super(ending.type);
    this.ending = ending;
  }
}

/** What an error thrown while reading means. */
export function endingOf(error: unknown): Ending {
  if (error instanceof SessionEnded) return error.ending;
  if (error instanceof ApiError) return { type: "refused", error, inStream: false };
  if (error instanceof OversizeValue) return { type: "oversize", limit: error.limit };
  if (error instanceof NotJson) return { type: "poison", message: error.message };
  if (error instanceof BadList) return { type: "protocol", message: error.message };
  if (error instanceof WatchfireError && error.code === "WF_KUBE_PROTOCOL") {
    return { type: "protocol", message: error.message };
  }
  const message = networkFailure(error);
  return { type: hasSystemCode(error) ? "network" : "internal", message };
}

/** Sockets, TLS, DNS, undici and zlib all give their errors a code; a fault in our own code has none. */
function hasSystemCode(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return typeof (error as NodeJS.ErrnoException).code === "string" || hasSystemCode(error.cause);
}

/** A short name for metrics and logs: `eof`, `idle`, `http_429`, `error_410`. */
export function causeOf(ending: Ending): string {
  if (ending.type === "refused") return `${ending.inStream ? "error" : "http"}_${ending.error.status}`;
  if (ending.type === "eof" && ending.truncated) return "truncated";
  return ending.type === "closed" ? ending.by : ending.type;
}

const rewind = "the cluster's state went back, as it does when it is restored from a backup; all is listed anew";

/** In words, for the status page. */
export function messageOf(ending: Ending): string {
  switch (ending.type) {
    case "refused":
      return `${ending.error.status} ${ending.error.reason} ${ending.error.message}`.replace(/ {2,}/g, " ");
    case "network":
    case "protocol":
    case "poison":
    case "unsupported":
    case "internal":
      return ending.message;
    case "oversize":
      return `an object is larger than ${ending.limit} bytes`;
    case "unmarked":
      return "the server did not mark the end of the initial events";
    case "idle":
      return "nothing was received for too long";
    case "closed":
      return ending.by === "rewind" ? rewind : ending.by;
    default:
      return causeOf(ending);
  }
}
