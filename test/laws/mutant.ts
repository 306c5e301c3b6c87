import type { Law } from "./edits/law-names.ts";

/**
 * A fault that the runtime once had, or a similar one: the edits that restore it, and the check that must then fail.
 */
export interface Mutant {
  readonly fault: string;
  /** Path from the repository's root. */
  readonly file: string;
  /** Pairs of a text that occurs once in the file, and the text with the fault that replaces it. */
  readonly edits: readonly (readonly [string, string])[];
  /** The worlds, of which some seed breaks a law, or the test file of which some test fails. */
  readonly caughtBy: WorldKind | `test/${string}.test.ts`;
  /**
   * Limits worlds with edits: the law that breaks, and the edits that the worlds may have. Default: any law, all edits.
   */
  readonly within?: { readonly law: Law; readonly edits: readonly string[] };
}

/** Kinds of worlds, each with a list of mutants. */
export const worldKinds = ["fleet", "edits"] as const;
export type WorldKind = (typeof worldKinds)[number];

/** Whether a mutant is caught by worlds, and not by a test file. */
export const isWorldKind = (caughtBy: Mutant["caughtBy"]): caughtBy is WorldKind =>
  worldKinds.some((kind) => kind === caughtBy);
