import type { ErrorCode } from "../base/errors.ts";
import type { CompileBudget } from "./condition-limits.ts";

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const field = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined);

export const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

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
