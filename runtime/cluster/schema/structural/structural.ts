import type { FieldError } from "../field-error.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Schema } from "../schema.ts";
import { forbidden, invalid, notSupported, required } from "../validation/errors.ts";
import { checkExtensions } from "./extensions.ts";
import { checkDefault, checkKeywordValues } from "./keyword-values.ts";
import { checkRuleDeclarations } from "./rule-declarations.ts";
import { checkBranches } from "./value-validation.ts";

const types = ["array", "boolean", "integer", "number", "object", "string"];
const unsupported = ["$ref", "definitions", "dependencies", "id", "patternProperties", "additionalItems"];

/**
 * The position of a schema in the CRD, as errors name it. `metadata` is true for the schema of a resource's metadata, and below
 * it.
 */
interface Place {
  readonly path: string;
  readonly metadata: boolean;
}

/**
 * Checks a CRD version's `schema.openAPIV3Schema`: that it is structural, and that its keywords, defaults and rules are valid.
 * `path` is its position in the CRD. The real server uses `spec.validation.openAPIV3Schema` if all versions have the same schema
 * (or there is one version), otherwise `spec.versions[0].schema.openAPIV3Schema`. The rules of a stored schema are not checked
 * again: they were when it was written, perhaps under other limits.
 */
export function structuralSchema(
  openAPIV3Schema: JsonObject,
  path = "spec.validation.openAPIV3Schema",
  isStored = false,
): { schema: Schema; errors?: undefined } | { schema?: undefined; errors: FieldError[] } {
  const errors = checkRoot(openAPIV3Schema, path);
  errors.push(...check(openAPIV3Schema, { path, metadata: false }, true));
  const schema = openAPIV3Schema as unknown as Schema;
  // Rules are compiled against types, which only a valid schema has.
  if (errors.length === 0 && !isStored) errors.push(...checkRuleDeclarations(schema, path));
  return errors.length > 0 ? { errors } : { schema };
}

function checkRoot(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { type } = schema;
  if (schema.nullable) errors.push(forbidden(`${path}.nullable`, "nullable cannot be true at the root"));
  if (!type) errors.push(required(`${path}.type`, "must not be empty at the root"));
  else if (type !== "object") errors.push(invalid(`${path}.type`, type, "must be object at the root"));
  return errors;
}

function check(source: Json, place: Place, top: boolean): FieldError[] {
  const { path } = place;
  if (!isObject(source)) return [invalid(path, source, "must be a schema object")];
  const schema = source as unknown as Schema;
  const errors = [
    ...checkShape(source, path, top),
    ...checkKeywordValues(schema, path),
    ...checkExtensions(schema, path),
  ];
  errors.push(...checkBranches(schema, path));
  if (source.default !== undefined) {
    if (place.metadata) errors.push(forbidden(`${path}.default`, "must not be set in top-level metadata"));
    else if (errors.length === 0) errors.push(...checkDefault(schema, `${path}.default`));
  }
  errors.push(...checkChildren(schema, source, place, top));
  return errors;
}

function checkShape(source: JsonObject, path: string, top: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { type } = source;
  const open = source["x-kubernetes-preserve-unknown-fields"] || source["x-kubernetes-int-or-string"];
  if (!type && !open && !top && source.$ref === undefined)
    errors.push(required(`${path}.type`, "must not be empty for specified object fields"));
  if (typeof type === "string" && type && !types.includes(type)) {
    errors.push(notSupported(`${path}.type`, type, types));
  }
  for (const name of unsupported) {
    if (source[name] !== undefined) errors.push(forbidden(`${path}.${name}`, `${name} is not supported`));
  }
  if (source.uniqueItems) {
    const why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    errors.push(forbidden(`${path}.uniqueItems`, why));
  }
  if (source.additionalProperties !== undefined && isObject(source.properties)) {
    const why = "additionalProperties and properties are mutual exclusive";
    errors.push(forbidden(`${path}.additionalProperties`, why));
  }
  if (type === "array" && source.items === undefined) errors.push(required(`${path}.items`, "must be specified"));
  if (Array.isArray(source.items)) {
    errors.push(forbidden(`${path}.items`, "items must be a schema object and not an array"));
  }
  return errors;
}

function checkChildren(schema: Schema, source: JsonObject, place: Place, top: boolean): FieldError[] {
  const { path, metadata } = place;
  const errors: FieldError[] = [];
  const properties = isObject(source.properties) ? source.properties : {};
  if (top || schema["x-kubernetes-embedded-resource"]) errors.push(...checkResource(properties, path));
  for (const [name, child] of Object.entries(properties)) {
    const inMetadata = metadata || (top && name === "metadata");
    errors.push(...check(child, { ...place, path: `${path}.properties[${name}]`, metadata: inMetadata }, false));
  }
  if (isObject(source.additionalProperties)) {
    errors.push(...check(source.additionalProperties, { ...place, path: `${path}.additionalProperties` }, false));
  }
  if (isObject(source.items)) {
    errors.push(...check(source.items, { path: `${path}.items`, metadata }, false));
  }
  return errors;
}

/** Checks the schema of a resource's own fields: it may state their types, and for metadata also the names. */
function checkResource(properties: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, type] of [
    ["apiVersion", "string"],
    ["kind", "string"],
    ["metadata", "object"],
  ] as const) {
    const property = properties[name];
    if (isObject(property) && property.type && property.type !== type) {
      errors.push(invalid(`${path}.properties[${name}].type`, property.type, `must be ${type}`));
    }
  }
  const metadata = isObject(properties.metadata) ? properties.metadata.properties : undefined;
  const others = Object.keys(isObject(metadata) ? metadata : {}).filter((name) => !/^(name|generateName)$/.test(name));
  if (others.length > 0) {
    const why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
    errors.push(forbidden(`${path}.properties[metadata]`, why));
  }
  return errors;
}
