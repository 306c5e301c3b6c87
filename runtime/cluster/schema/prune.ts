import { namedSchema } from "./built-in.ts";
import { isObject, type Json, type JsonObject, setMember } from "./json.ts";
import type { Schema } from "./schema.ts";

const anything: Schema = { "x-kubernetes-preserve-unknown-fields": true };

/**
 * Drops the fields that the schema does not know. `apiVersion`, `kind` and `metadata` are always known, at the top and in an
 * embedded resource. `unknown` lists the dropped fields as `fieldValidation` names them: `spec.containers[0].x`.
 */
export function prune(schema: Schema, object: JsonObject): { object: JsonObject; unknown: string[] } {
  const unknown: string[] = [];
  const kept = pruneObject(object, schema, "", unknown, true);
  return { object: kept, unknown: schema.builtIn ? unknown : unknown.sort() };
}

function pruneValue(value: Json, schema: Schema, path: string, unknown: string[]): Json {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.map((item, index) => pruneValue(item, items, `${path}[${index}]`, unknown)) : value;
  }
  if (isObject(value)) return pruneObject(value, schema, path, unknown, false);
  // Go holds the field as a float64.
  return typeof value === "bigint" && schema.builtIn && schema.type === "number" ? Number(value) : value;
}

function pruneObject(value: JsonObject, schema: Schema, path: string, unknown: string[], top: boolean): JsonObject {
  const resource = !schema.builtIn && (top || schema["x-kubernetes-embedded-resource"]);
  const kept: JsonObject = {};
  for (const [name, child] of Object.entries(value)) {
    const known = resource ? (resourceField(name) ?? fieldSchema(schema, name)) : fieldSchema(schema, name);
    const childPath = path ? `${path}.${name}` : name;
    if (known) setMember(kept, name, pruneValue(child, known, childPath, unknown));
    else unknown.push(childPath);
  }
  return kept;
}

function resourceField(name: string): Schema | undefined {
  if (name === "apiVersion" || name === "kind") return anything;
  return name === "metadata" ? objectMeta() : undefined;
}

/** The schema of metadata, which the schema of a custom resource does not describe. */
export function objectMeta(): Schema {
  return namedSchema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

/** The schema of an object's field; `undefined` if the field is not allowed. */
export function fieldSchema(schema: Schema, name: string): Schema | undefined {
  if (schema.properties && Object.hasOwn(schema.properties, name)) return schema.properties[name];
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "object") return additionalProperties;
  return additionalProperties || schema["x-kubernetes-preserve-unknown-fields"] ? anything : undefined;
}
