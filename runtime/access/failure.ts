import type { WatchfireError } from "../base/errors.ts";
import type { HostCallError, HostReply } from "../sandbox/host-calls.ts";

/** A call that ends in an error for the guest: it is thrown within the room and becomes the reply at its edge. */
export class CallFailure extends Error {
  override readonly name = "CallFailure";
  readonly error: HostCallError;

  constructor(error: HostCallError) {
    super(error.message);
    this.error = error;
  }
}

/** The arguments cannot be used: nothing was sent. */
export const invalid = (message: string): CallFailure =>
  new CallFailure({ type: "InvalidError", message, status: 400, reason: "BadRequest" });

/** The manifest does not grant it: nothing was sent. `missingRule` is the line to add to `permissions`. */
export const refused = (message: string, missingRule: string): CallFailure =>
  new CallFailure({
    type: "ForbiddenError",
    message,
    status: 403,
    reason: "Forbidden",
    details: { refusedBy: "runtime", missingRule },
  });

/** The runtime refuses it whatever the manifest grants: nothing was sent. */
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

/** The function calls more than it may. */
export const tooMany = (message: string): CallFailure =>
  new CallFailure({ type: "TooManyRequestsError", message, status: 429, reason: "TooManyRequests" });

/** `ctx.fetch` failed; `refused` where the manifest's `egress` is the reason. */
export const fetchFailed = (message: string, byEgress = false): CallFailure =>
  new CallFailure({ type: "FetchError", message, details: { refused: byEgress } });

/** The answer's JSON text, as it came. */
export const answered = (json: string): HostReply => ({ ok: true, json });
