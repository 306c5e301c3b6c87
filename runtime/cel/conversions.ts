import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Duration, Timestamp } from "./time.ts";
import { double, int, isInt, isMap, mapKeys, numberOf, TypeValue, typeName, Uint, type Value } from "./value.ts";

/** Converts a value as `string()` does. */
export function toText(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || isInt(value)) return String(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return utf8(value);
  if (value instanceof Timestamp || value instanceof Duration) return value.toString();
  const number = numberOf(value);
  if (number === undefined) throw new EvaluationError(`string() cannot convert ${typeName(value)}`);
  return doubleText(number);
}

/** Formats a number like Go's `%g`: with an exponent below 0.0001 and from a million on. */
function doubleText(number: number): string {
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "+Inf" : "-Inf";
  if (Object.is(number, -0)) return "-0";
  const size = Math.abs(number);
  if (number === 0 || (size >= 1e-4 && size < 1e6)) return String(number);
  return number.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** Cost of converting a number or a time to text or back. */
const converting = 50;

function written(meter: Meter, value: Value): string {
  meter.pay(converting);
  return toText(value);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function utf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new EvaluationError("string() takes bytes in UTF-8");
  }
}

function wholeNumber(meter: Meter, text: string, type: string): bigint {
  meter.pay(converting);
  if (!(type === "uint" ? /^\d{1,20}$/ : /^[+-]?\d{1,20}$/).test(text))
    throw new EvaluationError(`${type}() cannot convert a text of ${text.length} characters`);
  return BigInt(text.replace("+", ""));
}

function truncated(meter: Meter, value: number, type: string): bigint {
  meter.pay(converting);
  if (!Number.isFinite(value) || (type === "uint" && value < 0)) {
    throw new EvaluationError(`${type}() cannot convert ${value}`);
  }
  return BigInt(Math.trunc(value));
}

function toDouble(meter: Meter, text: string): Value {
  meter.pay(converting);
  const special = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (special) return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (/^nan$/i.test(text)) return Number.NaN;
  if (!/^[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:e[+-]?\d{1,4})?$/i.test(text)) {
    throw new EvaluationError(`double() cannot convert a text of ${text.length} characters`);
  }
  const number = Number(text);
  if (!Number.isFinite(number)) throw new EvaluationError("double() cannot convert a number so large");
  return double(number);
}

const booleans: Readonly<Record<string, boolean>> = {
  "1": true,
  t: true,
  T: true,
  true: true,
  TRUE: true,
  True: true,
  "0": false,
  f: false,
  F: false,
  false: false,
  FALSE: false,
  False: false,
};

function toBool(text: string): boolean {
  const value = Object.hasOwn(booleans, text) ? booleans[text] : undefined;
  if (value === undefined) throw new EvaluationError(`bool() cannot convert a text of ${text.length} characters`);
  return value;
}

const same = (_: Meter, value: Value): Value => value;

function sizeOfMap(meter: Meter, map: Value): number {
  if (map instanceof Map) return map.size;
  return isMap(map) ? mapKeys(meter, map).length : 0;
}

/** CEL's conversions between its types, `type`, `dyn`, and sizes other than those of strings. */
export const conversions: Library = {
  functions: [
    ["dyn(dyn): dyn", same],
    ["type(dyn): type", (_, value: Value) => new TypeValue(typeName(value))],
    ["bool(bool): bool", same],
    ["bool(string): bool", (_, text: string) => toBool(text)],
    ["int(int): int", same],
    ["int(uint): int", (_, { value }: Uint) => int(value)],
    ["int(double): int", (meter, value: Value) => int(truncated(meter, numberOf(value) ?? 0, "int"))],
    ["int(string): int", (meter, text: string) => int(wholeNumber(meter, text, "int"))],
    ["int(google.protobuf.Timestamp): int", (_, { seconds }: Timestamp) => int(seconds)],
    ["uint(uint): uint", same],
    ["uint(int): uint", (_, value: number | bigint) => new Uint(BigInt(value))],
    ["uint(double): uint", (meter, value: Value) => new Uint(truncated(meter, numberOf(value) ?? 0, "uint"))],
    ["uint(string): uint", (meter, text: string) => new Uint(wholeNumber(meter, text, "uint"))],
    ["double(double): double", same],
    // An int has no negative zero.
    ["double(int): double", (_, value: number | bigint) => double(Number(value) + 0)],
    ["double(uint): double", (_, { value }: Uint) => double(Number(value))],
    ["double(string): double", (meter, text: string) => toDouble(meter, text)],
    ["bytes(bytes): bytes", same],
    [
      "bytes(string): bytes",
      (meter, text: string) => {
        meter.payText(text.length, 2);
        return Buffer.from(text);
      },
    ],
    ...["string", "bool", "int", "uint", "double", "google.protobuf.Timestamp", "google.protobuf.Duration"].map(
      (type) => [`string(${type}): string`, (meter: Meter, value: Value) => written(meter, value)] as const,
    ),
    [
      "string(bytes): string",
      (meter, bytes: Uint8Array) => {
        meter.payText(bytes.length, 2);
        return utf8(bytes);
      },
    ],
    ...["size(bytes): int", "bytes.size(): int", "size(list): int", "list.size(): int"].map(
      (signature) => [signature, (_: Meter, { length }: { readonly length: number }) => length] as const,
    ),
    ["size(map): int", sizeOfMap],
    ["map.size(): int", sizeOfMap],
  ],
};

/** Converts a literal from the parser, whose ints are bigints and whose doubles are numbers, to a value. */
export function literal(value: unknown): Value {
  if (typeof value === "bigint") return int(value);
  if (typeof value === "number") return double(value);
  if (typeof value === "object" && value !== null && !(value instanceof Uint8Array))
    return new Uint(BigInt(String(value)));
  return value;
}
