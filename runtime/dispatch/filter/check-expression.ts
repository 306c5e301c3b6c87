import { ExpressionError } from "./cel/expression-error.ts";
import { Expression } from "./expression.ts";

/** What is wrong with a CEL expression of `matchConditions`, in words; undefined where it compiles to a bool. */
export function checkExpression(expression: string): string | undefined {
  try {
    new Expression(expression);
    return undefined;
  } catch (error) {
    if (error instanceof ExpressionError) return `the expression ${error.message}`;
    throw error;
  }
}
