import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Duration } from "./time.ts";
import { isMap, mapKeys, numberOf, Optional, type Value } from "./value.ts";

/** Returns the value of an optional, which must have one. */
function present({ value }: Optional): Value {
  if (value === undefined) throw new EvaluationError("the optional has no value");
  return value;
}

function isZero(meter: Meter, value: Value): boolean {
  if (value instanceof Duration) return value.nanoseconds === 0n;
  if (value === null || value === false || value === "" || numberOf(value) === 0) return true;
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0;
  return isMap(value) && mapKeys(meter, value).length === 0;
}

/** Returns the values of a list of optionals, without the empty ones. */
function unwrap(meter: Meter, list: readonly Value[]): Value[] {
  meter.pay(list.length * 2);
  const made: Value[] = [];
  for (const item of list) {
    if (!(item instanceof Optional)) throw new EvaluationError("unwrap() takes a list of optionals");
    if (item.value !== undefined) made.push(item.value);
  }
  return made;
}

/** CEL's optional values; `or`, `orValue`, `optMap` and `optFlatMap` are macros. */
export const optionals: Library = {
  namespaces: ["optional"],
  functions: [
    ["OptionalNamespace.none(): optional<T>", () => Optional.none],
    ["OptionalNamespace.of(A): optional<A>", (_, _namespace: unknown, value: Value) => new Optional(value)],
    [
      "OptionalNamespace.ofNonZeroValue(A): optional<A>",
      (meter, _: unknown, value: Value) => (isZero(meter, value) ? Optional.none : new Optional(value)),
    ],
    ["optional.hasValue(): bool", (_, { value }: Optional) => value !== undefined],
    ["optional<A>.value(): A", (_, optional: Optional) => present(optional)],
    ["OptionalNamespace.unwrap(list<dyn>): list<dyn>", (meter, _: unknown, list: Value[]) => unwrap(meter, list)],
    ["list<dyn>.unwrapOpt(): list<dyn>", unwrap],
  ],
};
