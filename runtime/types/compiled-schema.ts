import type { JSONSchema } from "json-schema-to-typescript";
import type { StructuralSchema } from "./structural-schema.ts";

/** The SDK's own type, which replaces whatever a definition says about metadata. */
const metadata = { tsType: "ObjectMeta", description: "The object's name, namespace, labels and the like." };

/**
 * Converts the schema of one version of a kind for `json-schema-to-typescript`. Only known keywords are copied: no reference to a
 * file or address, and no text that would become code.
 */
export function kindSchema(schema: StructuralSchema, apiVersion: string, kind: string): JSONSchema {
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = schema.properties ?? {};
  const own = compiled({ ...schema, type: "object", properties: fields });
  const required = (schema.required ?? []).filter((field) => field in fields);
  return {
    ...own,
    properties: { apiVersion: { const: apiVersion }, kind: { const: kind }, metadata, ...own.properties },
    required: ["apiVersion", "kind", ...required],
  };
}

function compiled(schema: StructuralSchema): JSONSchema {
  const { description, nullable } = schema;
  const words = description === undefined ? {} : { description };
  const type = typeOf(schema);
  return nullable ? { ...words, anyOf: [type, { type: "null" }] } : { ...words, ...type };
}

function typeOf(schema: StructuralSchema): JSONSchema {
  if (schema["x-kubernetes-int-or-string"]) return { anyOf: [{ type: "number" }, { type: "string" }] };
  // A nullable enum repeats `null` among its values; `nullable` already expresses it.
  if (schema.enum) return { enum: schema.enum.filter((value) => value !== null) as string[] };
  if (schema.type === "array") return { type: "array", items: schema.items ? compiled(schema.items) : {} };
  if (schema.type === "integer" || schema.type === "number") return { type: "number" };
  if (schema.type === "string" || schema.type === "boolean") return { type: schema.type };
  const isObject = schema.type === "object" || schema.properties !== undefined;
  return isObject ? objectOf(schema) : {};
}

function objectOf(schema: StructuralSchema): JSONSchema {
  const { properties = {}, additionalProperties: more, required = [] } = schema;
  const embedded = schema["x-kubernetes-embedded-resource"];
  const entries = Object.entries(properties).map(([name, of]) => [name, compiled(of)] as const);
  const standard = embedded ? { apiVersion: { type: "string" }, kind: { type: "string" }, metadata } : {};
  return {
    type: "object",
    properties: { ...Object.fromEntries(entries), ...standard } as NonNullable<JSONSchema["properties"]>,
    required: required.filter((field) => Object.hasOwn(properties, field)),
    additionalProperties:
      typeof more === "object" ? compiled(more) : more === true || isOpen(schema) || Boolean(embedded),
  };
}

/** The API server removes unknown fields from objects of all other schemas. */
const isOpen = (schema: StructuralSchema): boolean => schema["x-kubernetes-preserve-unknown-fields"] === true;
