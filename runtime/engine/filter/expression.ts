import {
  type ASTNode,
  CelEnvironment,
  type CompiledExpression,
  compile,
  dynamic,
  EvaluationError,
  ExpressionError,
  firstLine,
  LimitExceeded,
  type Meter,
  typeName,
} from "@watchfire/cel";
import { longestExpression } from "../../manifest/condition-limits.ts";
import { type FieldPath, pathsOf } from "./named-fields.ts";
import { RequiredText } from "./required-text.ts";

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

/** Whether an expression holds, or why it cannot be evaluated. */
export type ExpressionResult =
  | { readonly type: "holds" }
  | { readonly type: "fails" }
  /** It has no value, or not a bool; for example, a field is missing. */
  | { readonly type: "error"; readonly message: string }
  /** It exceeded its cost limit. */
  | { readonly type: "limit"; readonly message: string };

const holds: ExpressionResult = { type: "holds" };
const fails: ExpressionResult = { type: "fails" };

/** A compiled expression over `object` and `oldObject`. */
export class Expression {
  /** The fields that it names, of each variable. */
  readonly objectPaths: readonly FieldPath[];
  readonly oldObjectPaths: readonly FieldPath[];
  private readonly code: CompiledExpression;
  /** The text that it requires of a field before all else; `undefined` if it starts with something else. */
  readonly demand: RequiredText | undefined;

  /**
   * @param ast the parsed text, if it is at hand
   * @throws ExpressionError unless it compiles to a bool, or to a type that may be a bool at run time
   */
  constructor(text: string, ast: ASTNode = parseCondition(text)) {
    this.objectPaths = pathsOf(ast, "object");
    this.oldObjectPaths = pathsOf(ast, "oldObject");
    this.code = compile(ast);
    this.demand = RequiredText.of(ast);
  }

  get usesOldObject(): boolean {
    return this.oldObjectPaths.length > 0;
  }

  /**
   * Evaluates the expression on parsed JSON, which needs to have the named fields only. `oldObject` is called when the evaluation
   * reads it. Does not throw.
   */
  evaluate(meter: Meter, object: unknown, oldObject: () => unknown): ExpressionResult {
    try {
      const value = this.code({ meter, object, oldObject, slots: [] });
      if (typeof value === "boolean") return value ? holds : fails;
      return { type: "error", message: `yields ${typeName(value)}, not bool` };
    } catch (error) {
      if (error instanceof EvaluationError) return { type: "error", message: error.message };
      // Any other error, such as a full stack, proves nothing about the object.
      const message = error instanceof LimitExceeded ? error.message : `cannot be evaluated: ${firstLine(error)}`;
      return { type: "limit", message };
    }
  }
}
