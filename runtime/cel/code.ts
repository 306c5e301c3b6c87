import type { ASTNode } from "@marcbachmann/cel-js";
import { EvaluationError, type Meter } from "./meter.ts";
import { typeName, type Value } from "./value.ts";

/** One evaluation: its variables and its meter. */
export interface Evaluation {
  readonly meter: Meter;
  /** `object` of a condition, `self` of a rule. */
  readonly object: Value;
  /** `oldObject` or `oldSelf`, the previous state. Parsed when it is first used. */
  readonly oldObject: () => Value;
  /** Variables of macros, by slot. */
  readonly slots: Value[];
}

/** A compiled expression. Throws an EvaluationError if it has no value. */
export type CompiledExpression = (run: Evaluation) => Value;

/** A macro's variable, with the enclosing ones. */
export interface Scope {
  readonly name: string;
  readonly slot: number;
  readonly outer: Scope | undefined;
}

/** Compiles an operand in a scope. */
export type Compile = (node: ASTNode, scope: Scope | undefined) => CompiledExpression;

export const enter = (outer: Scope | undefined, name: string): Scope => ({
  name,
  slot: outer ? outer.slot + 1 : 0,
  outer,
});

export function slotOf(scope: Scope | undefined, name: string): number | undefined {
  for (let each = scope; each; each = each.outer) if (each.name === name) return each.slot;
  return undefined;
}

/** Returns the value as a bool. @throws EvaluationError for other values */
export function truth(value: Value): boolean {
  if (typeof value === "boolean") return value;
  throw new EvaluationError(`expected bool, found ${typeName(value)}`);
}
