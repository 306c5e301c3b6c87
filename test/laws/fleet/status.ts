/** A metav1.Status with the reason of a failed request. */
export const status = (code: number, reason: string, message: string): object => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  code,
  reason,
  message,
});

/** The Status for expired history. */
export const expired = (message: string): object => status(410, "Expired", message);
