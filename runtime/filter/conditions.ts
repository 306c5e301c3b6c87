import { type Place, WatchfireError } from "../errors.ts";
import { ExpressionError } from "./cel/expression-error.ts";
import { expressionLimit, Meter, triggerLimit } from "./cel/meter.ts";
import { Expression } from "./expression.ts";

interface Condition {
  readonly name: string;
  readonly expression: Expression;
}

/** A condition of which it could not be told whether it holds. */
export interface ConditionError {
  readonly condition: string;
  readonly message: string;
  /** Its cost ran out: it counts as holding. */
  readonly doubtful: boolean;
}

export interface ConditionSource {
  readonly name: string;
  readonly expression: string;
}

/**
<<<<<<< HEAD
 * What is known of the previous object: `all` of it; it `in-part`, so that a condition which cannot be evaluated on it
 * counts as holding; or `not-compared`, so that all conditions which read it count as holding.
 */
type Comparison = "all" | "in-part" | "not-compared";

/**
 * A trigger's match conditions. All must hold, as in admission policies: one that is false decides; one that cannot be
 * evaluated, such as for a field that is missing, counts as not holding, and is told.
=======
 * A trigger's match conditions. All must hold, as in admission policies: one that is false decides. One that has no value,
 * such as for a field that is missing, counts as not holding, and is told. One whose cost runs out counts as holding, and
 * is told: whoever may write an object could otherwise make it too large to be told of.
>>>>>>> 2248afd (Meter match conditions, and give them RE2 and Kubernetes' libraries)
 */
export class MatchConditions {
  /** Whether any of them reads `oldObject`. */
  readonly usesOldObject: boolean;
  private readonly conditions: readonly Condition[];

  /** Throws a fault of the filter section, at `place`, for an expression that does not compile. */
  constructor(sources: readonly ConditionSource[], place?: Place) {
    this.conditions = sources.map((source, index) => compile(source, index, place));
    this.usesOldObject = this.conditions.some(({ expression }) => expression.usesOldObject);
  }

  get count(): number {
    return this.conditions.length;
  }

<<<<<<< HEAD
  /** Takes objects as `celValue` gives them; `oldObject` is null for an Added. */
=======
  /**
   * Takes parsed JSON; `oldObject` gives null for an Added, and is called where a condition comes to name it.
   * @param which `of-object-alone`: those that read `oldObject` are taken as holding
   */
>>>>>>> 2248afd (Meter match conditions, and give them RE2 and Kubernetes' libraries)
  match(
    object: unknown,
    oldObject: () => unknown,
    onError: (error: ConditionError) => void,
    comparison: Comparison = "all",
  ): boolean {
<<<<<<< HEAD
    const variables = { object, oldObject };
    let failure: ConditionError | undefined;
    for (const { name, usesOldObject, evaluate } of this.conditions) {
      if (usesOldObject && comparison === "not-compared") continue;
      try {
        if (evaluate(variables) !== true) return false;
      } catch (error) {
        if (usesOldObject && comparison === "in-part") continue;
        failure ??= { condition: name, message: firstLine(error) };
      }
=======
    let left = triggerLimit;
    const failures: ConditionError[] = [];
    for (const { name: condition, expression } of this.conditions) {
      if (expression.usesOldObject && which === "of-object-alone") continue;
      const meter = new Meter(Math.min(expressionLimit, left));
      const outcome = expression.evaluate(meter, object, oldObject);
      left = Math.max(0, left - meter.used);
      if (outcome.type === "fails") return false;
      if (outcome.type === "holds") continue;
      failures.push({ condition, message: outcome.message, doubtful: outcome.type === "limit" });
>>>>>>> 2248afd (Meter match conditions, and give them RE2 and Kubernetes' libraries)
    }
    for (const failure of failures) onError(failure);
    return failures.every(({ doubtful }) => doubtful);
  }
}

function compile({ name, expression }: ConditionSource, index: number, place: Place | undefined): Condition {
  try {
    return { name, expression: new Expression(expression) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new WatchfireError(error.code, {
      what: `condition ${name} ${error.message}`,
      path: `matchConditions[${index}].expression`,
      actual: expression,
      ...(place && { place }),
    });
  }
}
