import { ExpressionError, expressionLimit, Meter, triggerLimit } from "@watchfire/cel";
import { type SourceLocation, WatchfireError } from "../../base/errors.ts";
import { Expression, type ExpressionResult } from "./expression.ts";
import { NamedFields } from "./named-fields.ts";
import { PreviousObject } from "./previous-object.ts";
import type { ObjectText } from "./raw-fields.ts";
import type { HeldBack } from "./reason.ts";
import type { RequiredText } from "./required-text.ts";

/**
 * Units of cost after which judging may be put off between two conditions. So a piece takes at most these and one expression's: about
 * 10 ms where the plainest unit takes 2 ns (`cost.test.ts`).
 */
export const pieceUnits = 100_000;

interface MatchCondition {
  readonly name: string;
  readonly expression: Expression;
  /** Why an event is held back of which it is false. */
  readonly isFalse: HeldBack;
}

/** A condition of which it could not be told whether it holds. */
export interface ConditionError {
  readonly condition: string;
  readonly message: string;
  /** Its cost ran out: it counts as holding. */
  readonly doubtful: boolean;
}

interface ConditionSource {
  readonly name: string;
  readonly expression: string;
}

/** One condition's answer. `unknown`: it compares with a state that is not known, and counts as holding. */
export interface ConditionAnswer {
  readonly condition: string;
  readonly answer: ExpressionResult | { readonly type: "unknown" };
}

/** Who hears of the conditions as they are judged. */
export interface Hearing {
  /** One could not be evaluated, and decides. */
  onError(error: ConditionError): void;
  /** Where it is given, each condition is evaluated, also behind one that is false. */
  onAnswer?(answer: ConditionAnswer): void;
}

/**
 * A trigger's match conditions. All must hold, as in admission policies: one that is false decides. One that has no
 * value, such as for a field that is missing, counts as not holding, and is told. One whose cost runs out counts as
 * holding, and is told. A writer of the object could otherwise keep it from being told by making it large.
 */
export class MatchConditions {
  /** Whether any of them reads `oldObject`. */
  readonly usesOldObject: boolean;
  private readonly conditions: readonly MatchCondition[];
  /** What they name of the object, and of the one before. */
  private readonly fields: NamedFields;
  private readonly oldFields: NamedFields;
  /** What the first one asks of an object before all else; undefined where it begins with something else. */
  private readonly demand: RequiredText | undefined;

  /** Throws a fault of the filter section, at `place`, for an expression that does not compile. */
  constructor(sources: readonly ConditionSource[], place?: SourceLocation) {
    this.conditions = sources.map((source, index) => compile(source, index, place));
    this.fields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.objectPaths));
    this.oldFields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.oldObjectPaths));
    this.demand = this.conditions[0]?.expression.demand;
    this.usesOldObject = this.conditions.some(({ expression }) => expression.usesOldObject);
  }

  get count(): number {
    return this.conditions.length;
  }

  /** The first condition, where it asks an object's field for a text and there is another. Else nothing is said. */
  plainRefusal(text: ObjectText): HeldBack | undefined {
    return this.demand?.isRefusedBy(text, this.fields) ? this.conditions[0]?.isFalse : undefined;
  }

  /** What the first one demands: the field, its text, and what stands there in an object. Undefined where it demands nothing. */
  get demanded() {
    const { demand, fields } = this;
    return (
      demand && { field: demand.field, value: demand.value, read: (text: ObjectText) => demand.textIn(text, fields) }
    );
  }

  /** Why an event is held back whose object lacks what is demanded; undefined where nothing is. */
  get lacking(): HeldBack | undefined {
    return this.demand && this.conditions[0]?.isFalse;
  }

  /**
   * Takes an object's JSON, and that of the object before. `none` says that there was none. Undefined says that it is
   * not known, and then conditions that read it count as holding. Returns which condition holds the event back; undefined
   * where all hold.
   */
  refusal(...of: Parameters<MatchConditions["pieces"]>): HeldBack | undefined {
    const pieces = this.pieces(...of);
    for (;;) {
      const { done, value } = pieces.next();
      if (done) return value;
    }
  }

  /** The same; yields where a piece of it has taken long enough. `hearing` hears of errors at the end alone. */
  *pieces(
    text: ObjectText,
    oldBody: Buffer | "none" | undefined,
    hearing: Hearing,
  ): Generator<undefined, HeldBack | undefined> {
    const object = this.fields.readShared(text);
    const old = oldBody === "none" ? PreviousObject.none : oldBody && new PreviousObject(oldBody, this.oldFields);
    let left = triggerLimit;
    let piece = 0;
    const failures: ConditionError[] = [];
    let refused: HeldBack | undefined;
    for (const { name: condition, expression, isFalse } of this.conditions) {
      const compared = expression.usesOldObject ? old : PreviousObject.none;
      if (!compared) {
        hearing.onAnswer?.({ condition, answer: { type: "unknown" } });
        continue;
      }
      if (piece >= pieceUnits) {
        yield;
        piece = 0;
      }
      const meter = new Meter(Math.min(expressionLimit, left));
      const outcome = expression.evaluate(meter, object, () => compared.value);
      left = Math.max(0, left - meter.used);
      piece += meter.used;
      hearing.onAnswer?.({ condition, answer: outcome });
      if (outcome.type === "fails") {
        refused ??= isFalse;
        if (hearing.onAnswer) continue;
        return refused;
      }
      if (outcome.type === "holds" || (outcome.type === "error" && compared.isPartial)) continue;
      failures.push({ condition, message: outcome.message, doubtful: outcome.type === "limit" });
    }
    if (refused) return refused;
    for (const failure of failures) hearing.onError(failure);
    const missing = failures.find(({ doubtful }) => !doubtful);
    return missing && { type: "conditionError", condition: missing.condition, message: missing.message };
  }
}

function compile(
  { name, expression }: ConditionSource,
  index: number,
  place: SourceLocation | undefined,
): MatchCondition {
  try {
    return { name, expression: new Expression(expression), isFalse: { type: "condition", condition: name } };
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
