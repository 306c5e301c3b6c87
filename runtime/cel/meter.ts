/**
 * Cost that one expression may use on one event: `PerCallLimit` of Kubernetes,
 * staging/src/k8s.io/apiserver/pkg/apis/cel/config.go.
 */
export const expressionLimit = 1_000_000;

/** Cost that all conditions of a trigger may use on one event: `RuntimeCELCostBudgetMatchConditions`, same file. */
export const triggerLimit = 2_500_000;

/** Cost of reading a character: `StringTraversalCostFactor` of cel-go, common/cost.go. */
const perCharacter = 0.1;

/** Deepest value that is compared or walked. Kubernetes' JSON goes down to 10,000 levels, more than a stack has. */
const deepest = 500;

/** Cost of an EvaluationError that an operator catches. */
export const failing = 100;

/** An expression used up its cost: nobody knows whether it holds. No operator of CEL takes it for false. */
export class LimitExceeded extends Error {
  override readonly name = "LimitExceeded";
}

/**
 * An expression has no value: a field is missing, a type does not fit, a number overflows. It is no Error: one may come
 * with every element of a list, and a stack takes 15 us. The message holds nothing of the object, which may be a Secret.
 */
export class EvaluationError {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/**
 * The cost of one evaluation. A unit is about 10 ns on a slow core; work that takes time in proportion to the data is
 * paid before it is done. What happens once per node of the expression is free: the expression's length bounds it.
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

  /** Pays for reading or writing so many characters, `times` over. */
  payText(characters: number, times = 1): void {
    this.pay(1 + characters * times * perCharacter);
  }

  /** @throws LimitExceeded for a value nested deeper than is walked */
  enter(depth: number): void {
    if (depth > deepest) throw new LimitExceeded(`meets a value nested deeper than ${deepest} levels`);
  }
}
