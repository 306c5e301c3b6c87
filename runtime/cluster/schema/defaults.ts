import { isObject, type Json, type JsonObject, member, setMember } from "./json.ts";
import type { Schema } from "./schema.ts";

/**
 * Fills in the schema's defaults, top down, so that a default may fill in more inside another. A null where the schema
 * allows none counts as absent. A built-in kind's defaults are the values that Go writes out for a field that was not
 * given (`status: {}`). The values that the real server computes for a kind are not in its schema.
 */
export function applyDefaults(schema: Schema, object: JsonObject): JsonObject {
  return fillObject(object, schema);
}

function fill(value: Json, schema: Schema): Json {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.map((item) => fill(forbidden(item, items) ? (items.default ?? item) : item, items)) : value;
  }
  return isObject(value) ? fillObject(value, schema) : value;
}

function forbidden(value: Json | undefined, schema: Schema): boolean {
  return value === null && !schema.nullable && !(schema.builtIn && schema["x-kubernetes-preserve-unknown-fields"]);
}

function fillObject(object: JsonObject, schema: Schema): JsonObject {
  const filled: JsonObject = {};
  const { additionalProperties: rest } = schema;
  const properties = schema.properties ?? {};
  for (const [name, value] of Object.entries(object)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : typeof rest === "object" ? rest : undefined;
    if (!field) setMember(filled, name, value);
    else if (!forbidden(value, field)) setMember(filled, name, fill(value, field));
    else if (field.default !== undefined) setMember(filled, name, fill(field.default, field));
  }
  for (const [name, field] of Object.entries(properties)) {
    if (member(filled, name) === undefined && field.default !== undefined && fits(field)) {
      setMember(filled, name, fill(field.default, field));
    }
  }
  return filled;
}

/** A built-in time's default is `{}` in the schema, which is no time. */
function fits(field: Schema): boolean {
  return !(field.builtIn && isObject(field.default) && field.type !== "object");
}
