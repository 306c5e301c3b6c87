import { WatchfireError } from "../../base/errors.ts";
import { ApiError } from "../../kube/api-error.ts";
import { networkFailure } from "../../kube/http-transport.ts";
import { BadList } from "../scan/list-splitter.ts";
import { NotJson, OversizeValue } from "../scan/value-reader.ts";

/**
 * Why a list, or one connection of a watch, ended. The set is closed, so that the response to each is decided in one place
 * (`next-step.ts`) and no case is forgotten.
 */
export type Ending =
  /** The server closed the stream normally; `truncated` if the last event was incomplete. */
  | { readonly type: "eof"; readonly truncated: boolean }
  /**
   * We closed it: to stop, because another connection serves its subscribers, because the cluster's state went back, or because
   * the right to watch seems to be revoked.
   */
  | { readonly type: "closed"; readonly by: "stop" | "join" | "rewind" | "revoked" }
  /** No byte arrived within the allowed silence. */
  | { readonly type: "idle" }
  | { readonly type: "overdue" }
  /** The machine slept or the process was stopped, so the state of the connection is unknown. */
  | { readonly type: "suspended" }
  /** The initial events did not end in time. */
  | { readonly type: "unmarked" }
  | { readonly type: "network"; readonly message: string }
  /** An error status, or an ERROR event inside the stream. */
  | { readonly type: "refused"; readonly error: ApiError; readonly inStream: boolean }
  /** Something other than an API server answered. */
  | { readonly type: "protocol"; readonly message: string }
  /** An event that violates the protocol; it is never skipped. */
  | { readonly type: "poison"; readonly message: string }
  | { readonly type: "oversize"; readonly limit: number }
  /** Objects of another kind, or without a resourceVersion: watching them cannot work. */
  | { readonly type: "unsupported"; readonly message: string }
  /** An internal error, such as a subscriber that threw. It is never swallowed, and the event is read again. */
  | { readonly type: "internal"; readonly message: string };

/** An ending thrown while reading a list or handling an event. */
export class SessionEnded extends Error {
  override readonly name = "Ended";
  readonly ending: Ending;

  constructor(ending: Ending) {
    super(ending.type);
    this.ending = ending;
  }
}

/** Maps an error thrown while reading to an ending. */
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

/** Errors of sockets, TLS, DNS, undici and zlib all have a code; a fault in our own code has no code. */
function hasSystemCode(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return typeof (error as NodeJS.ErrnoException).code === "string" || hasSystemCode(error.cause);
}

/** Returns a short name for metrics and logs: `eof`, `idle`, `http_429`, `error_410`. */
export function causeOf(ending: Ending): string {
  if (ending.type === "refused") return `${ending.inStream ? "error" : "http"}_${ending.error.status}`;
  if (ending.type === "eof" && ending.truncated) return "truncated";
  return ending.type === "closed" ? ending.by : ending.type;
}

const rewind = "the cluster's state went back, as after a restore from a backup; everything is listed again";

/** Returns a description for the status page. */
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
