import { Quantity } from "@watchfire/cel";
import { isFields } from "../api/object.ts";
import { isNumber, WrittenNumber } from "../exact-json.ts";
import { goKind, type Json, matchesFormat, microTime, type Schema } from "../schema/index.ts";

/**
 * Finds the first value that Go could not decode into a built-in kind, and returns the message of Go's JSON decoder; `undefined`
 * if all values fit. Custom resources have no Go type: their schema is checked instead. Numbers may be WrittenNumbers, because Go
 * does not decode `1.0` into an int.
 */
export function typeMismatch(schema: Schema, value: unknown, path: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (schema["x-kubernetes-int-or-string"]) return notIntOrString(value, path);
  if (schema.builtIn && schema.format === "quantity") return notQuantity(value);
  if (schema.format === "byte" && Array.isArray(value)) return notBytes(value, path);
  const expected = schema.type;
  if (expected && !fits(schema, value)) {
    const shown = shownNumber(value, expected) ?? goKind(value as Json);
    const type = expected === "integer" ? (schema.format ?? "int32") : goTypes[expected];
    return `json: cannot unmarshal ${shown} into Go struct field ${path} of type ${type}`;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items && first(value, (item) => typeMismatch(items, item, path));
  }
  if (typeof value === "string" && schema.format === "byte") return notBase64(value);
  if (typeof value === "string" && (schema.format === "date-time" || schema.format === microTime))
    return notTime(value, schema.format === microTime);
  if (!isFields(value)) return undefined;
  const more = schema.additionalProperties;
  return first(Object.entries(value), ([name, child]) => {
    const own = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (own) return typeMismatch(own, child, `${path}.${name}`);
    return isFields(more) ? typeMismatch(more as Schema, child, path) : undefined;
  });
}

/** Formats a number as Go's decoder shows it; `undefined` for any other value. */
function shownNumber(value: unknown, expected: Schema["type"]): string | undefined {
  if (!isNumber(value) && !(value instanceof WrittenNumber)) return undefined;
  if (expected !== "integer") return "number";
  return `number ${value instanceof WrittenNumber ? value.written : value}`;
}

const goTypes: Record<Exclude<Schema["type"], "integer" | undefined>, string> = {
  object: "map[string]interface {}",
  array: "[]interface {}",
  string: "string",
  number: "float64",
  boolean: "bool",
};

function fits({ type, format }: Schema, value: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (value instanceof WrittenNumber) return type === "number";
  if (type === "object") return isFields(value);
  if (type === "number") return isNumber(value);
  if (type !== "integer") return typeof value === type;
  if (format !== "int32") return typeof value === "bigint" || Number.isSafeInteger(value);
  return typeof value === "number" && Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31;
}

function notIntOrString(value: unknown, path: string): string | undefined {
  if (typeof value === "string" || fits(int32, value)) return undefined;
  const shown = shownNumber(value, "integer") ?? goKind(value as Json);
  return `json: cannot unmarshal ${shown} into Go struct field ${path} of type int32`;
}

const int32: Schema = { type: "integer", format: "int32" };

/** Go reads a quantity from the text of any JSON value. */
function notQuantity(value: unknown): string | undefined {
  const text = value instanceof WrittenNumber ? value.written : String(value);
  const isScalar = typeof value === "string" || isNumber(value) || value instanceof WrittenNumber;
  if (isScalar && Quantity.isQuantity(text)) return undefined;
  return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
}

/** Go also reads bytes from a list of their numbers. */
function notBytes(list: readonly unknown[], path: string): string | undefined {
  return first(list, (one) =>
    typeof one === "number" && Number.isInteger(one) && one >= 0 && one < 256
      ? undefined
      : `json: cannot unmarshal ${shownNumber(one, "integer") ?? goKind(one as Json)} into Go struct field ${path} of type uint8`,
  );
}

/** RFC 3339, which has a `T` and a zone. */
const wholeTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const preciseTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;

function notTime(text: string, isPrecise: boolean): string | undefined {
  const layout = isPrecise ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
  if ((isPrecise ? preciseTime : wholeTime).test(text) && matchesFormat(text, "date-time")) return undefined;
  return `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout)}: it does not have this form`;
}

function notBase64(text: string): string | undefined {
  const wrong = text.search(/[^A-Za-z0-9+/=\r\n]/);
  if (wrong >= 0) return `illegal base64 data at input byte ${wrong}`;
  return text.replace(/[\r\n]/g, "").length % 4 === 0 ? undefined : `illegal base64 data at input byte ${text.length}`;
}

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
