import { calculate } from "./arithmetic.ts";
import { compare, equals } from "./equality.ts";
import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import type { Value } from "./value.ts";

function extreme(meter: Meter, list: readonly Value[], name: string, sign: 1 | -1): Value {
  if (list.length === 0) throw new EvaluationError(`${name}() of an empty list`);
  meter.pay(list.length * 3);
  return list.reduce((best, item) => (compare(meter, "<", item, best) * sign > 0 ? item : best));
}

function isSorted(meter: Meter, list: readonly Value[]): boolean {
  meter.pay(list.length * 3);
  return list.every((item, index) => index === 0 || compare(meter, "<=", list[index - 1], item) <= 0);
}

function sum(meter: Meter, [first, ...rest]: readonly Value[]): Value {
  meter.pay(rest.length * 5);
  return rest.reduce((total, item) => calculate(meter, "+", total, item), first === undefined ? 0 : first);
}

function indexOf(meter: Meter, list: readonly Value[], item: Value): number {
  return list.findIndex((each) => equals(meter, each, item));
}

function lastIndexOf(meter: Meter, list: readonly Value[], item: Value): number {
  return list.findLastIndex((each) => equals(meter, each, item));
}

/** Kubernetes' functions on lists. */
export const lists: Library = {
  functions: [
    ["list<dyn>.isSorted(): bool", isSorted],
    ["list<dyn>.sum(): dyn", sum],
    ["list<dyn>.min(): dyn", (meter, list: Value[]) => extreme(meter, list, "min", -1)],
    ["list<dyn>.max(): dyn", (meter, list: Value[]) => extreme(meter, list, "max", 1)],
    ["list<dyn>.indexOf(dyn): int", indexOf],
    ["list<dyn>.lastIndexOf(dyn): int", lastIndexOf],
  ],
};
