import { isObject, type Json, type JsonObject, member, setMember } from "./json.ts";
import type { Schema } from "./schema.ts";

/**
 * Fills in the schema's defaults from the top down, so that a default may receive further defaults inside. A null is treated as
 * absent if the schema does not allow null. For a built-in kind, the defaults are the values that Go writes for a field that was
 * not set (`status: {}`). Values that the real server computes for a kind are not in its schema.
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
    else if (field.default !== undefined && !(schema.builtIn && field.default === ""))
      setMember(filled, name, fill(field.default, field));
  }
  for (const [name, field] of Object.entries(properties)) {
    if (member(filled, name) === undefined && field.default !== undefined && !isLeftOut(schema, name) && fits(field)) {
      setMember(filled, name, fill(field.default, field));
    }
  }
  return filled;
}

/** True for the name of a reference within a built-in kind: Go leaves it out if it is empty, although "" is its default. */
function isLeftOut(schema: Schema, name: string): boolean {
  return (
    schema.builtIn === true &&
    name === "name" &&
    !schema.required?.includes(name) &&
    schema.properties?.name?.default === ""
  );
}

/** False for the default of a built-in time, which is `{}` in the schema and not a time. */
function fits(field: Schema): boolean {
  return !(field.builtIn && isObject(field.default) && field.type !== "object");
}
