import { compile } from "../../runtime/cel/compile.ts";
import { EvaluationError, expressionLimit, Meter } from "../../runtime/cel/meter.ts";
import { conditionEnvironment } from "../../runtime/engine/filter/expression.ts";

/** The value of an expression of any type over an object, or an Error if it has no value. */
export function evaluate(expression: string, object: unknown = {}, meter = new Meter(expressionLimit)): unknown {
  const code = compile(conditionEnvironment.parse(expression).ast);
  try {
    return code({ meter, object, oldObject: () => null, slots: [] });
  } catch (error) {
    if (error instanceof EvaluationError) return new Error(error.message);
    throw error;
  }
}
