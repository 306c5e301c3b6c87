import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import type { HostCallError } from "../sandbox/host-calls.ts";
import { CallFailure } from "./failure.ts";
import { missingRule, type RequestAttributes } from "./grants.ts";

/** The error for an answer larger than `limit` bytes. */
export const answerTooLarge = (status: number, limit: number): CallFailure =>
  new CallFailure({
    type: "KubeError",
    message: `the answer is larger than ${limit} bytes: list with \`limit\` and \`continue\`, or with a selector`,
    status,
    reason: "ResponseTooLarge",
  });

/** The checks that the message names if no similar kind is served. */
export const whatToCheck =
  "check apiVersion and kind with `kubectl api-resources`, and that the kind's CustomResourceDefinition is installed";

/** The error of a call for a kind that the API server does not serve. */
export const notServedError = (message: string): HostCallError => ({
  type: "NotServedError",
  message,
  status: 404,
  reason: "NotServed",
});

/** Returns the error that the guest receives for a failure of the API server or of the connection to it. */
export function callErrorOf(error: unknown, demand: RequestAttributes): HostCallError {
  if (error instanceof CallFailure) return error.error;
  if (error instanceof ApiError) return ofStatus(error, demand);
  if (error instanceof WatchfireError && error.code === "WF_KUBE_FORBIDDEN") {
    const details = { refusedBy: "apiserver", missingRule: missingRule(demand) };
    return { type: "ForbiddenError", message: error.message, status: 403, reason: "Forbidden", details };
  }
  const what = "the API server cannot be reached";
  // Addresses and certificates concern the runtime only, and are in its log.
  return error instanceof WatchfireError && error.code !== "WF_KUBE_UNREACHABLE"
    ? { type: "KubeError", message: "the API server's answer cannot be read", status: 0, reason: error.code }
    : { type: "KubeError", message: what, status: 0, reason: "Unreachable" };
}

function ofStatus({ status, reason, message, retryAfterMs }: ApiError, demand: RequestAttributes): HostCallError {
  if (status === 404 && reason === "" && demand.subresource === undefined) {
    // The path is missing, not the object.
    const type = `${demand.resource}${demand.group === "" ? "" : `.${demand.group}`}`;
    return notServedError(`the API server does not serve ${type}; ${whatToCheck}`);
  }
  const error = { type: classOf(status, reason), message, status, reason };
  if (error.type === "ForbiddenError") {
    return { ...error, details: { refusedBy: "apiserver", missingRule: missingRule(demand) } };
  }
  if (error.type === "TooManyRequestsError" && retryAfterMs !== undefined)
    return { ...error, details: { retryAfterMs } };
  return error;
}

function classOf(status: number, reason: string): string {
  switch (status) {
    case 403:
      return "ForbiddenError";
    case 404:
      return "NotFoundError";
    case 409:
      return reason === "AlreadyExists" ? "AlreadyExistsError" : "ConflictError";
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return "InvalidError";
    case 429:
      return "TooManyRequestsError";
    case 408:
    case 504:
      return "TimeoutError";
    default:
      // A server that gives up also reports Timeout with status 500.
      return reason === "Timeout" ? "TimeoutError" : "KubeError";
  }
}
