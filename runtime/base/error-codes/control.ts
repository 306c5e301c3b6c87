import { type ErrorEntry, system, user } from "./entry.ts";

/** Errors of callers of the control API. */
export const controlCodes = {
  WF_CONTROL_TOKEN: user(
    "the API server does not accept the token of a request",
    "log in to the cluster again; for a ServiceAccount, pass `--as-account NAME`, or create another token without --audience",
  ),
  WF_CONTROL_FORBIDDEN: user(
    "an account may not do what it asks the runtime for",
    "ask whoever administers the namespace for the Role that `watchfire rbac --role reader` or `--role operator` prints",
  ),
  WF_CONTROL_REVIEW: system(
    "the rights of a caller could not be reviewed, so the request is refused",
    "check that the API server answers, and that the runtime may create tokenreviews and subjectaccessreviews: the chart grants it with `tokenReview.enabled=true`",
  ),
} as const satisfies Record<string, ErrorEntry>;
