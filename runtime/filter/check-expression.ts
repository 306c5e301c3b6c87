import { compileExpression, ExpressionError } from "./conditions.ts";

/** What is wrong with a CEL expression of `matchConditions`, in words; undefined where it compiles to a bool. */
export function checkExpression(expression: string): string | undefined {
  try {
    compileExpression(expression);
    return undefined;
  } catch (error) {
    if (error instanceof ExpressionError) return `the expression ${error.message}`;
    throw error;
  }
}
