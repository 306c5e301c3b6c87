import { EvaluationError, type Meter } from "./meter.ts";
import {
  type CelMap,
  isMap,
  mapGet,
  mapKeys,
  numberOf,
  Optional,
  TypeValue,
  typeName,
  Uint,
  UnorderedList,
  type Value,
} from "./value.ts";

/** A library's value with an equality or an order. */
interface Comparable {
  /** Returns a negative number if this is less than the other, 0 if they are equal. */
  compareTo(other: unknown): number;
}

const isComparable = (value: unknown): value is Comparable =>
  typeof value === "object" && value !== null && "compareTo" in value && typeof value.compareTo === "function";

/** Cost of comparing numbers of two types, which must be converted. */
const mixed = 8;

/** Evaluates CEL's `==`: values of different types are unequal, except that numbers of different types are compared by value. */
export function equals(meter: Meter, left: Value, right: Value, depth = 0): boolean {
  meter.pay(2);
  if (typeof left === "string") {
    if (typeof right !== "string" || left.length !== right.length) return false;
    meter.payText(left.length);
    return left === right;
  }
  if (left === right) return true;
  if (typeof left === "bigint" && typeof right === "bigint") return false;
  if (left === null || right === null) return false;
  if (Array.isArray(left)) return Array.isArray(right) && equalLists(meter, left, right, depth);
  const number = numberOf(left);
  if (number !== undefined) return equalNumbers(meter, left, right, number);
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left instanceof Uint8Array) {
    meter.payText(left.length);
    return right instanceof Uint8Array && Buffer.compare(left, right) === 0;
  }
  if (isMap(left)) return isMap(right) && equalMaps(meter, left, right, depth);
  return equalObjects(meter, left, right, depth);
}

function equalNumbers(meter: Meter, left: Value, right: Value, number: number): boolean {
  const other = numberOf(right);
  if (other === undefined) return false;
  meter.pay(mixed);
  const [a, b] = [exact(left), exact(right)];
  return a !== undefined && b !== undefined ? a === b : number === other;
}

const exact = (value: Value): bigint | undefined =>
  typeof value === "bigint"
    ? value
    : value instanceof Uint
      ? value.value
      : Number.isSafeInteger(value)
        ? BigInt(Number(value))
        : undefined;

function equalLists(meter: Meter, left: readonly Value[], right: readonly Value[], depth: number): boolean {
  if (left.length !== right.length) return false;
  meter.enter(depth);
  if (left instanceof UnorderedList) return equalItems(meter, left, right, depth);
  for (let index = 0; index < left.length; index++) {
    if (!equals(meter, left[index], right[index], depth + 1)) return false;
  }
  return true;
}

/** Compares items with the same key, in any order. */
function equalItems(meter: Meter, left: UnorderedList, right: readonly Value[], depth: number): boolean {
  const byKey = new Map(left.map((item) => [left.keyOf(item), item]));
  return right.every((item) => {
    meter.pay(20);
    const key = left.keyOf(item);
    return byKey.has(key) && equals(meter, byKey.get(key), item, depth + 1);
  });
}

function equalMaps(meter: Meter, left: CelMap, right: CelMap, depth: number): boolean {
  meter.enter(depth);
  const keys = mapKeys(meter, left);
  if (keys.length !== mapKeys(meter, right).length) return false;
  return keys.every((key) => {
    const other = mapGet(right, key);
    return other !== undefined && equals(meter, mapGet(left, key), other, depth + 1);
  });
}

function equalObjects(meter: Meter, left: object, right: object, depth: number): boolean {
  if (left.constructor !== right.constructor) return false;
  if (left instanceof TypeValue && right instanceof TypeValue) return left.type === right.type;
  if (left instanceof Optional && right instanceof Optional) return equals(meter, left.value, right.value, depth + 1);
  return isComparable(left) && left.compareTo(right) === 0;
}

/**
 * Returns a negative number if left is less, a positive one if it is greater, NaN if neither. Throws if the types have no common
 * order.
 */
export function compare(meter: Meter, operator: string, left: Value, right: Value): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "bigint" && typeof right === "bigint") return left === right ? 0 : left < right ? -1 : 1;
  if (typeof left === "string" && typeof right === "string") {
    meter.payText(Math.min(left.length, right.length) + 20, 3);
    return left === right ? 0 : compareTexts(left, right);
  }
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a !== undefined && b !== undefined) {
    meter.pay(mixed);
    const [exactA, exactB] = [exact(left), exact(right)];
    if (exactA === undefined || exactB === undefined) return a - b;
    return exactA === exactB ? 0 : exactA < exactB ? -1 : 1;
  }
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    meter.payText(Math.min(left.length, right.length));
    return Buffer.compare(left, right);
  }
  const ordered = isOrdered(left) && isComparable(left) && typeName(left) === typeName(right);
  if (ordered) return left.compareTo(right);
  throw new EvaluationError(`no such overload: ${typeName(left)} ${operator} ${typeName(right)}`);
}

/** Only these types of the libraries have `<`. */
const isOrdered = (value: Value): boolean => /^google\.protobuf\./.test(typeName(value));

/** Compares by code points, as Go does. JavaScript's order differs for surrogates. */
function compareTexts(left: string, right: string): number {
  let index = 0;
  while (left.charCodeAt(index) === right.charCodeAt(index)) index++;
  const [a, b] = [left.charCodeAt(index), right.charCodeAt(index)];
  if (Number.isNaN(a) || Number.isNaN(b)) return left.length - right.length;
  const [high, low] = [a >= 0xd800 && a <= 0xdfff, b >= 0xd800 && b <= 0xdfff];
  return high === low ? a - b : high ? 1 : -1;
}
