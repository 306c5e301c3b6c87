import { ExpressionError, expressionLimit, Meter, triggerLimit } from "@watchfire/cel";
import { type SourceLocation, WatchfireError } from "../../base/errors.ts";
import { Expression, type ExpressionResult } from "./expression.ts";
import { NamedFields, PreviousObject } from "./named-fields.ts";
import type { ObjectText } from "./raw-fields.ts";
import type { HeldBack } from "./reason.ts";
import type { RequiredText } from "./required-text.ts";

/**
 * Cost units after which judging may pause between two conditions. A piece takes at most these and one expression's: about 10 ms,
 * if the cheapest unit takes 2 ns (`cost.long.test.ts`).
 */
export const pieceUnits = 100_000;

interface MatchCondition {
  readonly name: string;
  readonly expression: Expression;
  /** The reason for holding back an event of which the condition is false. */
  readonly isFalse: HeldBack;
}

/** A condition that could not be evaluated. */
export interface ConditionError {
  readonly condition: string;
  readonly message: string;
  /** True if it exceeded its cost limit; it then counts as holding. */
  readonly isUncertain: boolean;
}

interface ConditionSource {
  readonly name: string;
  readonly expression: string;
}

/** The answer of one condition. `unknown`: it compares with a state that is not known, and counts as holding. */
export interface ConditionAnswer {
  readonly condition: string;
  readonly answer: ExpressionResult | { readonly type: "unknown" };
}

/** Callbacks of an evaluation. */
export interface Hearing {
  /** Called for a condition that could not be evaluated, and that decides. */
  onError(error: ConditionError): void;
  /** If given, every condition is evaluated, also after one that is false. */
  onAnswer?(answer: ConditionAnswer): void;
}

/**
 * The match conditions of a trigger. All must hold, as in admission policies: a single false one decides. A condition without a
 * value, such as for a missing field, counts as not holding, and is reported. One that exceeds its cost limit counts as holding,
 * and is reported; otherwise whoever writes the object could keep it from being delivered by making it large.
 */
export class MatchConditions {
  /** Whether any of them reads `oldObject`. */
  readonly usesOldObject: boolean;
  readonly count: number;
  private readonly conditions: readonly MatchCondition[];
  /** The fields that they name, of the object and of the previous one. */
  private readonly fields: NamedFields;
  private readonly oldFields: NamedFields;
  /** The text that the first condition requires before all else; `undefined` if it starts with something else. */
  private readonly demand: RequiredText | undefined;

  /** @throws WatchfireError of the filter section, at `place`, for an expression that does not compile */
  constructor(sources: readonly ConditionSource[], place?: SourceLocation) {
    this.conditions = sources.map((source, index) => compile(source, index, place));
    this.count = sources.length;
    this.fields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.objectPaths));
    this.oldFields = new NamedFields(this.conditions.flatMap(({ expression }) => expression.oldObjectPaths));
    this.demand = this.conditions[0]?.expression.demand;
    this.usesOldObject = this.conditions.some(({ expression }) => expression.usesOldObject);
  }

  /** Returns the reason of the first condition if it requires a text and the object has another one; otherwise `undefined`. */
  plainRefusal(text: ObjectText): HeldBack | undefined {
    return this.demand?.isRefusedBy(text, this.fields) ? this.conditions[0]?.isFalse : undefined;
  }

  /**
   * The required text of the first condition: the field, its text, and a function that reads it. `undefined` if there is no such
   * text.
   */
  get demanded() {
    const { demand, fields } = this;
    return (
      demand && { field: demand.field, value: demand.value, read: (text: ObjectText) => demand.textIn(text, fields) }
    );
  }

  /** Why an event is held back if its object lacks the required text; `undefined` if no text is required. */
  get lacking(): HeldBack | undefined {
    return this.demand && this.conditions[0]?.isFalse;
  }

  /**
   * Evaluates the conditions on an object's JSON and that of the previous object. For the latter, `none` means that the object
   * did not exist, and `undefined` that it is not known; then conditions that read it count as holding.
   * @returns why the event is held back; `undefined` if all conditions hold
   */
  refusal(...of: Parameters<MatchConditions["pieces"]>): HeldBack | undefined {
    const pieces = this.pieces(...of);
    for (;;) {
      const { done, value } = pieces.next();
      if (done) return value;
    }
  }

  /** Same as `refusal`, as a generator that yields when a piece has taken long enough. `hearing` gets errors only at the end. */
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
      failures.push({ condition, message: outcome.message, isUncertain: outcome.type === "limit" });
    }
    if (refused) return refused;
    for (const failure of failures) hearing.onError(failure);
    const missing = failures.find(({ isUncertain }) => !isUncertain);
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
