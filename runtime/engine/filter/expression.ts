import {
  type CompiledExpression,
  compile,
  EvaluationError,
  firstLine,
  LimitExceeded,
  type Meter,
  typeName,
} from "@watchfire/cel";
import { type FieldPath, pathsOf } from "./named-fields.ts";
import { parseCondition } from "./parse-condition.ts";
import { RequiredText } from "./required-text.ts";

/** Whether an expression holds; where nobody can tell, why. */
export type ExpressionResult =
  | { readonly type: "holds" }
  | { readonly type: "fails" }
  /** It has no value, or none that is a bool, as where a field is missing. */
  | { readonly type: "error"; readonly message: string }
  /** It used up its cost. */
  | { readonly type: "limit"; readonly message: string };

const holds: ExpressionResult = { type: "holds" };
const fails: ExpressionResult = { type: "fails" };

/** A compiled expression over `object` and `oldObject`. */
export class Expression {
  /** The fields that it names, of either. */
  readonly objectPaths: readonly FieldPath[];
  readonly oldObjectPaths: readonly FieldPath[];
  private readonly code: CompiledExpression;
  /** What it asks of a field before all else; undefined where it begins with something else. */
  readonly demand: RequiredText | undefined;

  /** @throws ExpressionError unless it compiles to a bool, or to what may turn out as one */
  constructor(text: string) {
    const ast = parseCondition(text);
    this.objectPaths = pathsOf(ast, "object");
    this.oldObjectPaths = pathsOf(ast, "oldObject");
    this.code = compile(ast);
    this.demand = RequiredText.of(ast);
  }

  get usesOldObject(): boolean {
    return this.oldObjectPaths.length > 0;
  }

  /** Takes parsed JSON, of the named fields at least; `oldObject` is called where the expression comes to name it. Throws nothing. */
  evaluate(meter: Meter, object: unknown, oldObject: () => unknown): ExpressionResult {
    try {
      const value = this.code({ meter, object, oldObject, slots: [] });
      if (typeof value === "boolean") return value ? holds : fails;
      return { type: "error", message: `yields ${typeName(value)}, not bool` };
    } catch (error) {
      if (error instanceof EvaluationError) return { type: "error", message: error.message };
      // Whatever else goes wrong, such as a full stack, says nothing of the object.
      const message = error instanceof LimitExceeded ? error.message : `cannot be evaluated: ${firstLine(error)}`;
      return { type: "limit", message };
    }
  }
}
