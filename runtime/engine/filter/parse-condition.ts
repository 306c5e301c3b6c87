import { type ASTNode, CelEnvironment, dynamic, ExpressionError } from "@watchfire/cel";
import { longestExpression } from "../../manifest/condition-limits.ts";

/** Limit on the nesting of an expression. Kubernetes' parser stops at 250 levels. */
const deepestExpression = 100;

/** The variables of conditions and keys. */
export const conditionEnvironment = new CelEnvironment(
  { object: dynamic, oldObject: dynamic },
  { longest: longestExpression, deepest: deepestExpression },
);

/**
 * Parses an expression and checks its types.
 *
 * @throws ExpressionError unless it compiles to a bool, or to a type that may be a bool at run time
 */
export const parseCondition = (expression: string): ASTNode => parse(expression, ["bool", "dyn"], "bool");

/** The types that a trigger's `key` may have, as the type checker names them. */
const nameTypes = ["string", "list<string>", "list<dyn>", "list", "dyn"];

/** @throws ExpressionError unless it compiles to a text or a list of texts, or to a type that may be one at run time */
export const parseKey = (expression: string): ASTNode => parse(expression, nameTypes, "a name or a list of names");

function parse(expression: string, types: readonly string[], wanted: string): ASTNode {
  const { ast, type } = conditionEnvironment.parse(expression);
  if (types.includes(type)) return ast;
  throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `yields ${type}, not ${wanted}`);
}
