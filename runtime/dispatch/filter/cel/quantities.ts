import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Quantity } from "./quantity.ts";
import { double, int, type Value } from "./value.ts";

/** The longest quantity there is has 20 digits before the point and 9 behind it. */
const longest = 100;
/** Cost of reading a quantity. */
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

function asInteger(quantity: Quantity): Value {
  if (!quantity.isInteger) throw new EvaluationError("the quantity is no integer");
  return int(quantity.asInteger());
}

/** Kubernetes' quantities: `quantity('1.5Gi').isGreaterThan(quantity('1G'))`. */
export const quantities: Library = {
  types: [["kubernetes.Quantity", Quantity]],
  functions: [
    ["quantity(string): kubernetes.Quantity", parse],
    ["isQuantity(string): bool", isQuantity],
    ["kubernetes.Quantity.sign(): int", (_, one: Quantity) => one.compareTo(Quantity.parse("0"))],
    ["kubernetes.Quantity.isInteger(): bool", (_, one: Quantity) => one.isInteger],
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
