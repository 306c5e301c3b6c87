import { EvaluationError, type Meter } from "./meter.ts";

/**
 * Values of CEL, such that parsed JSON is one as it is: `null`, booleans, texts, arrays as lists, plain objects as maps.
 * An int is a safe integer, or a bigint beyond those; a double is any other number, or a Double. A map that an
 * expression made is a Map. `exact-json.ts` parses the numbers that `JSON.parse` would give another type or value.
 */
export type Value = unknown;

/** A double that is whole, such as `1.0`: the number alone would be an int. */
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

/** What `type(x)` gives. */
export class TypeValue {
  readonly type: string;
  constructor(type: string) {
    this.type = type;
  }
}

export class Optional {
  static readonly none = new Optional(undefined);
  /** Undefined where it has none. */
  readonly value: Value;
  constructor(value: Value) {
    this.value = value;
  }
}

/** A list whose order does not count, as Kubernetes' sets and maps: an item is known by its key. */
export class UnorderedList extends Array<Value> {
  readonly keyOf: (item: Value) => string;

  constructor(items: Iterable<Value>, keyOf: (item: Value) => string) {
    super();
    this.keyOf = keyOf;
    for (const item of items) this.push(item);
  }

  /** Methods of the array make plain lists. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** This list with the other's items: an item of a known key takes the place of the one that is there. */
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

/** Whether an int holds the value: 64 bits, signed. */
export const isInt64 = (value: bigint): boolean => value >= leastInt && value <= mostInt;

/** @throws EvaluationError beyond 64 bits */
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

/** A number of any type as JavaScript's; undefined for what is none. */
export function numberOf(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Double) return value.value;
  return value instanceof Uint ? Number(value.value) : undefined;
}

export type CelMap = Map<Value, Value> | Readonly<Record<string, Value>>;

export function isMap(value: Value): value is CelMap {
  if (typeof value !== "object" || value === null) return false;
  // Not by its constructor: JSON may have a field of that name.
  return value instanceof Map || Object.getPrototypeOf(value) === Object.prototype;
}

/** Keys that are equal in CEL are one in a Map; undefined for what is no key. */
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

/** A key that is listed takes 150 ns where an object has many. */
const perKey = 15;

export function mapKeys(meter: Meter, map: CelMap): Value[] {
  const keys: Value[] = map instanceof Map ? [...map.keys()] : Object.keys(map);
  meter.pay(keys.length * perKey);
  return keys;
}

/** Name of a value's type as `type()` and messages have it. */
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

/** Makes a library's class a type of CEL. */
export function declareClass(name: string, declared: unknown): void {
  classNames.set(declared, name);
}
