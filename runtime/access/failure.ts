import type { WatchfireError } from "../base/errors.ts";
import type { HostCallError, HostReply } from "../sandbox/host-calls.ts";

/** A call that ends in an error for the guest. Thrown within this folder, and converted to the reply by `Access`. */
export class CallFailure extends Error {
  override readonly name = "CallFailure";
  readonly error: HostCallError;

  constructor(error: HostCallError) {
    super(error.message);
    this.error = error;
  }
}

/** Invalid arguments. The request was not sent. */
export const invalid = (message: string): CallFailure =>
  new CallFailure({ type: "InvalidError", message, status: 400, reason: "BadRequest" });

/** Not granted by the manifest. The request was not sent. `missingRule`: the line to add to `permissions`. */
export const refused = (message: string, missingRule: string): CallFailure =>
  new CallFailure({
    type: "ForbiddenError",
    message,
    status: 403,
    reason: "Forbidden",
    details: { refusedBy: "runtime", missingRule },
  });

/** Refused by the runtime whatever the manifest grants. The request was not sent. */
export const withheld = (fault: WatchfireError): CallFailure =>
  new CallFailure({
    type: "ForbiddenError",
    message: fault.message,
    status: 403,
    reason: "Forbidden",
    details: { refusedBy: "runtime" },
  });

/** No answer in time. */
export const timedOut = (message: string): CallFailure =>
  new CallFailure({ type: "TimeoutError", message, status: 0, reason: "Timeout" });

/** The function exceeds a limit of calls. */
export const tooMany = (message: string): CallFailure =>
  new CallFailure({ type: "TooManyRequestsError", message, status: 429, reason: "TooManyRequests" });

/** A failure of `ctx.fetch`. `byEgress`: true if the manifest's `egress` is the reason. */
export const fetchFailed = (message: string, byEgress = false): CallFailure =>
  new CallFailure({ type: "FetchError", message, details: { refused: byEgress } });

/** A successful reply with the answer's JSON text. */
export const answered = (json: string): HostReply => ({ ok: true, json });
