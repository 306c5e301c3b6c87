import { TypeError as CelTypeError, Environment, ParseError, type TypeCheckResult } from "@marcbachmann/cel-js";
import { type Place, WatchfireError } from "../errors.ts";
import { lowerFirst } from "../wording.ts";

/** A compiled expression over `object` and `oldObject`. */
interface Condition {
  readonly name: string;
  readonly usesOldObject: boolean;
  readonly evaluate: (variables: Readonly<Record<string, unknown>>) => unknown;
}

const environment = new Environment({ enableOptionalTypes: true })
  .registerVariable("object", "dyn")
  .registerVariable("oldObject", "dyn");

/** A condition that could not be evaluated. */
export interface ConditionError {
  readonly condition: string;
  readonly message: string;
}

export interface ConditionSource {
  readonly name: string;
  readonly expression: string;
}

/**
 * What is known of the previous object: `all` of it; it `in-part`, so that a condition which cannot be evaluated on it
 * counts as holding; or `not-compared`, so that all conditions which read it count as holding.
 */
type Comparison = "all" | "in-part" | "not-compared";

/**
 * A trigger's match conditions. All must hold, as in admission policies: one that is false decides; one that cannot be
 * evaluated, such as for a field that is missing, counts as not holding, and is told.
 */
export class MatchConditions {
  /** Whether any of them reads `oldObject`. */
  readonly usesOldObject: boolean;
  private readonly conditions: readonly Condition[];

  /** Throws a fault of the filter section, at `place`, for an expression that does not compile. */
  constructor(sources: readonly ConditionSource[], place?: Place) {
    this.conditions = sources.map((source, index) => compile(source, index, place));
    this.usesOldObject = this.conditions.some((condition) => condition.usesOldObject);
  }

  get count(): number {
    return this.conditions.length;
  }

  /** Takes objects as `celValue` gives them; `oldObject` is null for an Added. */
  match(
    object: unknown,
    oldObject: unknown,
    onError: (error: ConditionError) => void,
    comparison: Comparison = "all",
  ): boolean {
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
    }
    if (failure) onError(failure);
    return failure === undefined;
  }
}

type Evaluate = Condition["evaluate"];

/** Why an expression does not compile, in words. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly code: "WF_FILTER_CONDITION_SYNTAX" | "WF_FILTER_CONDITION_TYPE";

  constructor(code: ExpressionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** @throws ExpressionError unless it compiles to a bool, or to what may turn out as one */
export function compileExpression(expression: string): Evaluate {
  let check: TypeCheckResult;
  let parsed: ReturnType<typeof environment.parse>;
  try {
    parsed = environment.parse(expression);
    check = parsed.check();
  } catch (error) {
    throw new ExpressionError("WF_FILTER_CONDITION_SYNTAX", `does not compile: ${describe(error)}`);
  }
  if (!check.valid) throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `does not compile: ${describe(check.error)}`);
  if (check.type === "bool" || check.type === "dyn") return parsed;
  throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `yields ${check.type}, not bool`);
}

function compile({ name, expression }: ConditionSource, index: number, place: Place | undefined): Condition {
  try {
    return { name, usesOldObject: /\boldObject\b/.test(expression), evaluate: compileExpression(expression) };
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

/** What CEL says, with the character of the expression it says it about, from 1. */
function describe(error: unknown): string {
  const at = error instanceof ParseError || error instanceof CelTypeError ? error.range?.start : undefined;
  return `${lowerFirst(firstLine(error))}${at === undefined ? "" : ` at character ${at + 1}`}`;
}

const firstLine = (error: unknown): string =>
  ((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "").trim();

/** JSON as CEL sees it: whole numbers are of its type int, all others double. */
export function celValue(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (value === null || typeof value !== "object") return value;
  return new Map(Object.entries(value).map(([key, member]) => [key, celValue(member)]));
}
