/** Whose mistake a failure is: `user` ends a command with status 1, `system` with status 2. */
export type ErrorClass = "user" | "system";

export interface ErrorEntry {
  readonly blame: ErrorClass;
  /** What the code means, in one line; the README's table is made from it. */
  readonly summary: string;
  /** What to do about it. */
  readonly hint: string;
}

export const user = (summary: string, hint: string): ErrorEntry => ({ blame: "user", summary, hint });
export const system = (summary: string, hint: string): ErrorEntry => ({ blame: "system", summary, hint });
