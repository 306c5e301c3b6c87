import { compile } from "../../runtime/cel/compile.ts";
import { CelEnvironment } from "../../runtime/cel/environment.ts";
import { EvaluationError, expressionLimit, Meter } from "../../runtime/cel/meter.ts";
import { longestExpression } from "../../runtime/manifest/condition-limits.ts";

const environment = new CelEnvironment({ object: "dyn", oldObject: "dyn" }, longestExpression);

/** The value of an expression of any type over an object; an Error where it has none. */
export function evaluate(expression: string, object: unknown = {}, meter = new Meter(expressionLimit)): unknown {
  const code = compile(environment.parse(expression).ast);
  try {
    return code({ meter, object, oldObject: () => null, slots: [] });
  } catch (error) {
    if (error instanceof EvaluationError) return new Error(error.message);
    throw error;
  }
}
