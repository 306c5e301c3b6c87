import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Quantity } from "./quantity.ts";
import { double, int, type Value } from "./value.ts";

/** Maximum length. The longest quantity of a resource has 20 digits before and 9 after the point. */
const longest = 100;
/** Cost of parsing a quantity. */
const reading = 200;

function parse(meter: Meter, text: string): Quantity {
  if (!isQuantity(meter, text))
    throw new EvaluationError(`quantity() cannot convert a text of ${text.length} characters`);
  return Quantity.parse(text);
}

function isQuantity(meter: Meter, text: string): boolean {
  meter.pay(reading);
  return text.length <= longest && Quantity.isQuantity(text);
}

const ofInt = (value: number | bigint): Quantity => Quantity.parse(String(value));

/** True if a 64-bit int can hold it. */
const isInteger = (quantity: Quantity): boolean =>
  quantity.isInteger && BigInt.asIntN(64, quantity.asInteger()) === quantity.asInteger();

function asInteger(quantity: Quantity): Value {
  if (!isInteger(quantity)) throw new EvaluationError("the quantity is no integer");
  return int(quantity.asInteger());
}

const zero = Quantity.parse("0");
const sign = (_: Meter, one: Quantity): number => one.compareTo(zero);

/** Kubernetes' quantities: `quantity('1.5Gi').isGreaterThan(quantity('1G'))`. */
export const quantities: Library = {
  types: [["kubernetes.Quantity", Quantity]],
  functions: [
    ["quantity(string): kubernetes.Quantity", parse],
    ["isQuantity(string): bool", isQuantity],
    // Kubernetes documents the method, and implements the function.
    ["kubernetes.Quantity.sign(): int", sign],
    ["sign(kubernetes.Quantity): int", sign],
    ["kubernetes.Quantity.isInteger(): bool", (_, one: Quantity) => isInteger(one)],
    ["kubernetes.Quantity.asInteger(): int", (_, one: Quantity) => asInteger(one)],
    ["kubernetes.Quantity.asApproximateFloat(): double", (_, one: Quantity) => double(one.asNumber())],
    [
      "kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool",
      (_, one: Quantity, other: Quantity) => one.compareTo(other) > 0,
    ],
    [
      "kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool",
      (_, one: Quantity, other: Quantity) => one.compareTo(other) < 0,
    ],
    [
      "kubernetes.Quantity.compareTo(kubernetes.Quantity): int",
      (_, one: Quantity, other: Quantity) => one.compareTo(other),
    ],
    [
      "kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity",
      (_, one: Quantity, other: Quantity) => one.add(other, 1n),
    ],
    [
      "kubernetes.Quantity.add(int): kubernetes.Quantity",
      (_, one: Quantity, other: number) => one.add(ofInt(other), 1n),
    ],
    [
      "kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity",
      (_, one: Quantity, other: Quantity) => one.add(other, -1n),
    ],
    [
      "kubernetes.Quantity.sub(int): kubernetes.Quantity",
      (_, one: Quantity, other: number) => one.add(ofInt(other), -1n),
    ],
  ],
};
