/** Cause of a failure: `user` ends a command with status 1, `system` with status 2. */
export type ErrorClass = "user" | "system";

export interface ErrorEntry {
  readonly blame: ErrorClass;
  /** Meaning of the code, in one line. The reference page's table is generated from it. */
  readonly summary: string;
  /** How to fix it. */
  readonly hint: string;
}

export const user = (summary: string, hint: string): ErrorEntry => ({ blame: "user", summary, hint });
export const system = (summary: string, hint: string): ErrorEntry => ({ blame: "system", summary, hint });
