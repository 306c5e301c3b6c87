import type { ErrorCode } from "../base/errors.ts";

/**
 * Compiles a CEL expression over whole objects, or over their metadata: undefined, or what is wrong with it. The filter room
 * has the real one. `use`: what it is for. Default condition.
 */
export type ExpressionChecker = (
  expression: string,
  object: "Full" | "Metadata",
  use?: "condition" | "key",
) => string | undefined;

/** A rule between fields that does not hold. */
export interface RuleFault {
  readonly code: ErrorCode;
  readonly path: readonly (string | number)[];
  readonly what: string;
  readonly hint?: string;
}
