import { calculate } from "./arithmetic.ts";
import { compare, equals } from "./equality.ts";
import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Optional, typeName, type Value } from "./value.ts";

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

function slice(meter: Meter, list: readonly Value[], from: number, to: number): Value[] {
  const [start, end] = [Number(from), Number(to)];
  if (start < 0 || start > end || end > list.length) {
    throw new EvaluationError(`index out of range: slice(${start}, ${end}) of ${list.length} elements`);
  }
  meter.pay(end - start);
  return list.slice(start, end);
}

function flatten(meter: Meter, list: readonly Value[], depth: number | bigint): Value[] {
  if (depth < 0) throw new EvaluationError(`flatten(${depth}): the depth is 0 or more`);
  meter.pay(list.length * 2);
  if (Number(depth) === 0) return [...list];
  const made: Value[] = [];
  for (const item of list) {
    if (!Array.isArray(item)) made.push(item);
    else for (const inner of flatten(meter, item, Number(depth) - 1)) made.push(inner);
  }
  return made;
}

function distinct(meter: Meter, list: readonly Value[]): Value[] {
  const made: Value[] = [];
  for (const item of list) if (indexOf(meter, made, item) < 0) made.push(item);
  return made;
}

/** Each comparison pays. Their number is limited by that of a merge sort. */
function sort(meter: Meter, list: readonly Value[]): Value[] {
  meter.pay(list.length * (1 + Math.ceil(Math.log2(list.length + 1))) * 3);
  const [first] = list;
  if (list.length === 1) compare(meter, "<", first, first);
  return list.toSorted((left, right) => {
    if (typeName(left) !== typeName(right)) throw new EvaluationError("sort() takes a list of one type");
    return compare(meter, "<", left, right);
  });
}

function reverse(meter: Meter, list: readonly Value[]): Value[] {
  meter.pay(list.length);
  return list.toReversed();
}

function range(meter: Meter, count: number | bigint): Value[] {
  const length = Math.max(0, Number(count));
  meter.pay(length * 2);
  const made: Value[] = [];
  // `Array.from` with a function takes six times as long.
  for (let index = 0; index < length; index++) made.push(index);
  return made;
}

/** Returns the element at a position, if there is one. */
const elementAt = (list: readonly Value[], at: number): Optional =>
  list.length === 0 ? Optional.none : new Optional(list.at(at));

/** Kubernetes' functions on lists, and cel-go's extension, which Kubernetes has since 1.36. */
export const lists: Library = {
  namespaces: ["lists"],
  functions: [
    ["list<dyn>.isSorted(): bool", isSorted],
    ["list<dyn>.sum(): dyn", sum],
    ["list<dyn>.min(): dyn", (meter, list: Value[]) => extreme(meter, list, "min", -1)],
    ["list<dyn>.max(): dyn", (meter, list: Value[]) => extreme(meter, list, "max", 1)],
    ["list<dyn>.indexOf(dyn): int", indexOf],
    ["list<dyn>.lastIndexOf(dyn): int", lastIndexOf],
    ["list<dyn>.slice(int, int): list<dyn>", slice],
    ["list<dyn>.flatten(): list<dyn>", (meter, list: Value[]) => flatten(meter, list, 1)],
    ["list<dyn>.flatten(int): list<dyn>", flatten],
    ["list<dyn>.distinct(): list<dyn>", distinct],
    ["list<dyn>.sort(): list<dyn>", sort],
    ["list<dyn>.reverse(): list<dyn>", reverse],
    ["list<dyn>.first(): optional<dyn>", (_, list: Value[]) => elementAt(list, 0)],
    ["list<dyn>.last(): optional<dyn>", (_, list: Value[]) => elementAt(list, -1)],
    ["lists.range(int): list<int>", (meter, _: unknown, count: number) => range(meter, count)],
  ],
};
