/**
 * Maximum cost of one expression on one event: `PerCallLimit` of Kubernetes, staging/src/k8s.io/apiserver/pkg/apis/cel/config.go.
 */
export const expressionLimit = 1_000_000;

/** Maximum cost of all conditions of a trigger on one event: `RuntimeCELCostBudgetMatchConditions`, same file. */
export const triggerLimit = 2_500_000;

/** Cost of reading a character: `StringTraversalCostFactor` of cel-go, common/cost.go. */
const perCharacter = 0.1;

/** Maximum depth of values that are compared or walked. Kubernetes' JSON allows 10,000 levels, more than a stack. */
const deepest = 500;

/** Cost of an EvaluationError that an operator catches. */
export const failing = 100;

/** The expression exceeded its cost, so its result is unknown. No operator of CEL treats it as false. */
export class LimitExceeded extends Error {
  override readonly name = "LimitExceeded";
}

/**
 * The expression has no value: a field is missing, a type does not fit, a number overflows. Not an Error, because one may occur
 * for every element of a list, and a stack takes 15 us. The message contains nothing from the object, which may be a Secret.
 */
export class EvaluationError {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/**
 * The cost of one evaluation. A unit is about 10 ns on a slow core. Work in proportion to the data is paid before it is done.
 * Work once per node of the expression is free, because the expression's length limits it.
 */
export class Meter {
  private readonly limit: number;
  private left: number;

  constructor(limit: number) {
    this.limit = limit;
    this.left = limit;
  }

  /** Cost so far, in units. */
  get used(): number {
    return this.limit - this.left;
  }

  /** @throws LimitExceeded */
  pay(units: number): void {
    this.left -= units;
    if (this.left < 0) throw new LimitExceeded(`costs more than ${this.limit} units`);
  }

  /** Pays for reading or writing a number of characters, `times` times. */
  payText(characters: number, times = 1): void {
    this.pay(1 + characters * times * perCharacter);
  }

  /** @throws LimitExceeded for a value nested deeper than the limit */
  enter(depth: number): void {
    if (depth > deepest) throw new LimitExceeded(`meets a value nested deeper than ${deepest} levels`);
  }
}
