import { EvaluationError, type Meter } from "./meter.ts";

/**
 * A value of CEL. Parsed JSON is one without conversion: `null`, booleans, strings, arrays as lists, plain objects as maps. An
 * int is a safe integer, or a bigint beyond those; a double is any other number, or a Double. A map made by an expression is a
 * Map. `exact-json.ts` parses numbers that `JSON.parse` would give another type or value.
 */
export type Value = unknown;

/** A whole double, such as `1.0`, because a number would be an int. */
class Double {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    if (value < 0n || value > mostUint) throw new EvaluationError("unsigned integer overflow");
    this.value = value;
  }
}

/** The result of `type(x)`. */
export class TypeValue {
  readonly type: string;
  constructor(type: string) {
    this.type = type;
  }
}

export class Optional {
  static readonly none = new Optional(undefined);
  /** `undefined` if it is empty. */
  readonly value: Value;
  constructor(value: Value) {
    this.value = value;
  }
}

/** A list without order, such as Kubernetes' sets and maps. Items are identified by their key. */
export class UnorderedList extends Array<Value> {
  readonly keyOf: (item: Value) => string;

  constructor(items: Iterable<Value>, keyOf: (item: Value) => string) {
    super();
    this.keyOf = keyOf;
    for (const item of items) this.push(item);
  }

  /** The array's methods create plain lists. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** Returns this list with the other's items. An item with an existing key replaces that item. */
  merge(other: readonly Value[]): UnorderedList {
    const byKey = new Map([...this, ...other].map((item) => [this.keyOf(item), item]));
    return new UnorderedList(byKey.values(), this.keyOf);
  }
}

/** A namespace of functions, such as `sets` in `sets.contains(a, b)`. */
export class Namespace {
  readonly prefix: string;
  constructor(prefix: string) {
    this.prefix = prefix;
  }
}

const leastInt = -(2n ** 63n);
const mostInt = 2n ** 63n - 1n;
const mostUint = 2n ** 64n - 1n;

/** True if an int can hold the value: 64 bits, signed. */
export const isInt64 = (value: bigint): boolean => value >= leastInt && value <= mostInt;

/** Returns the bigint as an int. @throws EvaluationError beyond 64 bits */
export function int(value: bigint): Value {
  if (!isInt64(value)) throw new EvaluationError("integer overflow");
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

export const double = (value: number): Value => (Number.isSafeInteger(value) ? new Double(value) : value);

export const isInt = (value: Value): value is number | bigint =>
  Number.isSafeInteger(value) || typeof value === "bigint";

export const isDouble = (value: Value): value is number | Double =>
  value instanceof Double || (typeof value === "number" && !Number.isSafeInteger(value));

/** Returns a number of any type as a JavaScript number. `undefined` for other values. */
export function numberOf(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Double) return value.value;
  return value instanceof Uint ? Number(value.value) : undefined;
}

export type CelMap = Map<Value, Value> | Readonly<Record<string, Value>>;

export function isMap(value: Value): value is CelMap {
  if (typeof value !== "object" || value === null) return false;
  // Not by its constructor, because JSON may have a field of that name.
  return value instanceof Map || Object.getPrototypeOf(value) === Object.prototype;
}

/** Returns the key of a Map under which equal CEL keys are equal. `undefined` for values that cannot be keys. */
export function keyOf(value: Value): string | number | bigint | boolean | undefined {
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "bigint") return value;
  if (value instanceof Uint) return keyOf(int(value.value));
  const number = numberOf(value);
  if (number === undefined || !Number.isInteger(number) || Number.isSafeInteger(number)) return number;
  return BigInt(number);
}

export function mapGet(map: CelMap, key: Value): Value {
  if (map instanceof Map) return map.get(keyOf(key));
  return typeof key === "string" && Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Cost of listing a key, 150 ns for an object with many keys. */
const perKey = 15;

export function mapKeys(meter: Meter, map: CelMap): Value[] {
  const keys: Value[] = map instanceof Map ? [...map.keys()] : Object.keys(map);
  meter.pay(keys.length * perKey);
  return keys;
}

/** Returns the name of a value's type, as in `type()` and in messages. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case "string":
      return "string";
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    case "number":
      return Number.isSafeInteger(value) ? "int" : "double";
    default:
      if (typeof value !== "object") return "error";
      if (value === null) return "null_type";
      if (Array.isArray(value)) return "list";
      if (isMap(value)) return "map";
      return nameOfClass(value);
  }
}

function nameOfClass(value: object): string {
  if (value instanceof Double) return "double";
  if (value instanceof Uint) return "uint";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof TypeValue) return "type";
  if (value instanceof Optional) return "optional_type";
  if (value instanceof Namespace) return value.prefix;
  return classNames.get(value.constructor) ?? "unknown";
}

/** Types of the libraries, by class. */
const classNames = new Map<unknown, string>();

/** Declares a library's class as a type of CEL. */
export function declareClass(name: string, declared: unknown): void {
  classNames.set(declared, name);
}
