import { isFields } from "../api/object.ts";
import { isNumber, WrittenNumber } from "../exact-json.ts";
import { goKind, type Json, type Schema } from "../schema/index.ts";

/**
 * Finds the first value that Go could not decode into a built-in kind, and returns the message of Go's JSON decoder; `undefined`
 * if all values fit. Custom resources have no Go type: their schema is checked instead. Numbers may be WrittenNumbers, because Go
 * does not decode `1.0` into an int.
 */
export function typeMismatch(schema: Schema, value: unknown, path: string): string | undefined {
  if (value === null || value === undefined || schema["x-kubernetes-int-or-string"]) return undefined;
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
