import { isFields } from "../api/object.ts";
import type { Schema } from "../schema/index.ts";

/**
 * The first value that Go could not read into a built-in kind, in the words of its JSON decoder; undefined where all
 * fit. Custom resources have no Go type: their schema tells.
 */
export function typeMismatch(schema: Schema, value: unknown, path: string): string | undefined {
  if (value === null || value === undefined || schema["x-kubernetes-int-or-string"]) return undefined;
  const expected = schema.type;
  if (expected && !fits(expected, value)) {
    const actual = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
    const shown = expected === "integer" && actual === "number" ? `number ${String(value)}` : actual;
    return `json: cannot unmarshal ${shown} into Go struct field ${path} of type ${goTypes[expected]}`;
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

const goTypes: Record<NonNullable<Schema["type"]>, string> = {
  object: "map[string]interface {}",
  array: "[]interface {}",
  string: "string",
  integer: "int32",
  number: "float64",
  boolean: "bool",
};

function fits(type: NonNullable<Schema["type"]>, value: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isFields(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
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
