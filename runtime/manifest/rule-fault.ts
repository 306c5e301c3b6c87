import type { ErrorCode } from "../base/errors.ts";
import type { CompileBudget } from "./condition-limits.ts";

/**
 * Compiles a CEL expression over whole objects, or over their metadata. Returns `undefined`, or what is wrong with it. The filter
 * room implements it. `use`: the purpose of the expression; default condition. `budget`: what the manifest's expressions may still
 * take, and is charged; default: a whole one.
 */
export type ExpressionChecker = (
  expression: string,
  object: "Full" | "Metadata",
  use?: "condition" | "key",
  budget?: CompileBudget,
) => string | undefined;

/** Violation of a rule between fields. */
export interface RuleFault {
  readonly code: ErrorCode;
  readonly path: readonly (string | number)[];
  readonly what: string;
  readonly hint?: string;
}
