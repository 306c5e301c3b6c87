import { type Place, WatchfireError } from "../../errors.ts";
import { ExpressionError } from "./cel/expression-error.ts";
import { expressionLimit, Meter, triggerLimit } from "./cel/meter.ts";
import { Expression } from "./expression.ts";
import { NamedFields } from "./named-fields.ts";
import { PreviousObject } from "./previous-object.ts";
import type { ObjectText } from "./raw-fields.ts";

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
 * A trigger's match conditions. All must hold, as in admission policies: one that is false decides. One that has no
 * value, such as for a field that is missing, counts as not holding, and is told. One whose cost runs out counts as
 * holding, and is told. A writer of the object could otherwise keep it from being told by making it large.
 */
export class MatchConditions {
  /** Whether any of them reads `oldObject`. */
  readonly usesOldObject: boolean;
  private readonly conditions: readonly Condition[];
  /** What they name of the object, and of the one before. */
  private readonly fields: NamedFields;
  private readonly oldFields: NamedFields;

  /** Throws a fault of the filter section, at `place`, for an expression that does not compile. */
  constructor(sources: readonly ConditionSource[], place?: Place) {
    this.conditions = sources.map((source, index) => compile(source, index, place));
    this.fields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.objectPaths));
    this.oldFields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.oldObjectPaths));
    this.usesOldObject = this.conditions.some(({ expression }) => expression.usesOldObject);
  }

  get count(): number {
    return this.conditions.length;
  }

  /**
   * Takes an object's JSON, and that of the object before. `none` says that there was none. Undefined says that it is
   * not known, and then conditions that read it count as holding.
   */
  match(text: ObjectText, oldBody: Buffer | "none" | undefined, onError: (error: ConditionError) => void): boolean {
    const object = this.fields.read(text);
    const old = oldBody === "none" ? PreviousObject.none : oldBody && new PreviousObject(oldBody, this.oldFields);
    let left = triggerLimit;
    const failures: ConditionError[] = [];
    for (const { name: condition, expression } of this.conditions) {
      const compared = expression.usesOldObject ? old : PreviousObject.none;
      if (!compared) continue;
      const meter = new Meter(Math.min(expressionLimit, left));
      const outcome = expression.evaluate(meter, object, () => compared.value);
      left = Math.max(0, left - meter.used);
      if (outcome.type === "fails") return false;
      if (outcome.type === "holds" || (outcome.type === "error" && compared.isPartial)) continue;
      failures.push({ condition, message: outcome.message, doubtful: outcome.type === "limit" });
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
