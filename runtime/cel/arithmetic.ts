import { EvaluationError, type Meter } from "./meter.ts";
import { double, int, isDouble, isInt, numberOf, typeName, Uint, UnorderedList, type Value } from "./value.ts";

/** A library's value that supports `+` and `-`. */
interface Addable {
  /** Adds or, with `sign` -1, subtracts. Returns `undefined` if the other's type does not fit. */
  plus(other: unknown, sign: 1 | -1): object | undefined;
}

const isAddable = (value: unknown): value is Addable =>
  typeof value === "object" && value !== null && "plus" in value && typeof value.plus === "function";

export type ArithmeticOperator = "+" | "-" | "*" | "/" | "%";

/** Evaluates CEL's arithmetic. Both operands have the same type; an int has 64 bits. */
export function calculate(meter: Meter, operator: ArithmeticOperator, left: Value, right: Value): Value {
  if (typeof left === "number" && Number.isSafeInteger(left) && Number.isSafeInteger(right)) {
    const quick = quickly(operator, left, Number(right));
    if (Number.isSafeInteger(quick)) return quick;
  }
  if (isInt(left) && isInt(right)) return int(whole(operator, BigInt(left), BigInt(right)));
  if (isDouble(left) && isDouble(right) && operator !== "%") {
    return double(fractional(operator, numberOf(left) ?? 0, numberOf(right) ?? 0));
  }
  if (left instanceof Uint && right instanceof Uint) return new Uint(whole(operator, left.value, right.value));
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") {
      meter.payText(left.length + right.length);
      return left + right;
    }
    if (Array.isArray(left) && Array.isArray(right)) {
      meter.pay(1 + left.length + right.length);
      return left instanceof UnorderedList ? left.merge(right) : left.concat(right);
    }
    if (left instanceof Uint8Array && right instanceof Uint8Array) {
      meter.payText(left.length + right.length);
      return Buffer.concat([left, right]);
    }
  }
  if ((operator === "+" || operator === "-") && isAddable(left)) {
    const sum = left.plus(right, operator === "+" ? 1 : -1);
    if (sum) return sum;
  }
  throw new EvaluationError(`no such overload: ${typeName(left)} ${operator} ${typeName(right)}`);
}

/** Returns NaN if exact arithmetic is needed. */
function quickly(operator: ArithmeticOperator, left: number, right: number): number {
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  return operator === "*" ? left * right : Number.NaN;
}

function whole(operator: ArithmeticOperator, left: bigint, right: bigint): bigint {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      if (right === 0n) throw new EvaluationError("division by zero");
      return left / right;
    case "%":
      if (right === 0n) throw new EvaluationError("modulus by zero");
      return left % right;
  }
}

function fractional(operator: Exclude<ArithmeticOperator, "%">, left: number, right: number): number {
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  return operator === "*" ? left * right : left / right;
}

export function negate(value: Value): Value {
  if (isInt(value)) return int(-BigInt(value));
  if (isDouble(value)) return double(-(numberOf(value) ?? 0));
  throw new EvaluationError(`no such overload: -${typeName(value)}`);
}
