/** Whose mistake a failure is: `user` ends a command with status 1, `system` with status 2. */
export type Blame = "user" | "system";

export interface Entry {
  readonly blame: Blame;
  /** What the code means, in one line; the README's table is made from it. */
  readonly summary: string;
  /** What to do about it. */
  readonly hint: string;
}

export const user = (summary: string, hint: string): Entry => ({ blame: "user", summary, hint });
export const system = (summary: string, hint: string): Entry => ({ blame: "system", summary, hint });
