/** A metav1.Status that says why a request failed. */
export const status = (code: number, reason: string, message: string): object => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  code,
  reason,
  message,
});

/** History is gone. */
export const expired = (message: string): object => status(410, "Expired", message);
