import type { FieldError } from "../field-error.ts";
import type { Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { invalid, notSupported, required } from "../validation/errors.ts";

/** Checks a schema's `x-kubernetes-*` keywords and returns their faults. */
export function checkExtensions(schema: Schema, path: string): FieldError[] {
  return [
    ...checkResourceKeywords(schema, path),
    ...checkListKeywords(schema, path),
    ...checkMapKeys(schema, path),
    ...checkMapType(schema, path),
  ];
}

function checkResourceKeywords(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const preserve = schema["x-kubernetes-preserve-unknown-fields"];
  if (preserve === false) {
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, "must be true or undefined"));
  }
  if (schema["x-kubernetes-embedded-resource"]) {
    if (!preserve && Object.keys(schema.properties ?? {}).length === 0) {
      const why =
        "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
      errors.push(required(`${path}.properties`, why));
    }
    errors.push(...checkTypeFor(schema, path, "object", "if x-kubernetes-embedded-resource is true"));
  }
  if (schema["x-kubernetes-int-or-string"]) {
    const why = "must be false if x-kubernetes-int-or-string is true";
    for (const keyword of ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] as const)
      if (schema[keyword]) errors.push(invalid(`${path}.${keyword}`, true, why));
  }
  return errors;
}

/** Checks that a schema has the type that a keyword asks for. */
function checkTypeFor(schema: Schema, path: string, wanted: Schema["type"], when: string): FieldError[] {
  if (schema.type === wanted) return [];
  const why = `must be ${wanted} ${when}`;
  return [schema.type ? invalid(`${path}.type`, schema.type, why) : required(`${path}.type`, why)];
}

function checkListKeywords(schema: Schema, path: string): FieldError[] {
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const at = `${path}.x-kubernetes-list-type`;
  if (listType === undefined) {
    return keys.length > 0 ? [required(at, "must be map if x-kubernetes-list-map-keys is non-empty")] : [];
  }
  const errors: FieldError[] = [];
  const known = ["atomic", "set", "map"];
  if (!known.includes(listType)) errors.push(notSupported(at, listType, known));
  errors.push(...checkTypeFor(schema, path, "array", "if x-kubernetes-list-type is specified"));
  if (listType === "map" && keys.length === 0) {
    const why = "must not be empty if x-kubernetes-list-type is map";
    errors.push(required(`${path}.x-kubernetes-list-map-keys`, why));
  }
  const { items } = schema;
  if (listType === "set" && items?.type === "object" && items["x-kubernetes-map-type"] !== "atomic") {
    const why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(invalid(`${path}.items.x-kubernetes-map-type`, items["x-kubernetes-map-type"] ?? null, why));
  }
  if (listType === "set" && items?.type === "array" && items["x-kubernetes-list-type"] !== "atomic") {
    const why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(invalid(`${path}.items.x-kubernetes-list-type`, items["x-kubernetes-list-type"] ?? null, why));
  }
  return errors;
}

function checkMapKeys(schema: Schema, path: string): FieldError[] {
  const { items } = schema;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  if (schema["x-kubernetes-list-type"] !== "map" || !items || keys.length === 0) return [];
  const ofMap = "if parent array's x-kubernetes-list-type is map";
  if (items.type !== "object") return [invalid(`${path}.items.type`, items.type ?? "", `must be object ${ofMap}`)];
  const errors: FieldError[] = [];
  const at = `${path}.x-kubernetes-list-map-keys`;
  const listed: Json = [...keys];
  for (const key of keys) {
    const property = items.properties?.[key];
    const where = `${path}.items.properties[${key}]`;
    if (!property) errors.push(invalid(at, listed, "entries must all be names of item properties"));
    else if (property.type === "object" || property.type === "array") {
      errors.push(invalid(`${where}.type`, property.type, `must be a scalar type ${ofMap}`));
    } else if (property.default === undefined && !items.required?.includes(key)) {
      const why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
      errors.push(required(`${where}.default`, why));
    }
    if (property?.nullable) {
      const why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
      errors.push({ type: "Forbidden", path: `${where}.nullable`, message: `Forbidden: ${why}` });
    }
  }
  if (new Set(keys).size < keys.length) errors.push(invalid(at, listed, "must not contain duplicate entries"));
  return errors;
}

function checkMapType(schema: Schema, path: string): FieldError[] {
  const mapType = schema["x-kubernetes-map-type"];
  if (mapType === undefined) return [];
  const errors: FieldError[] = [];
  const known = ["atomic", "granular"];
  if (!known.includes(mapType)) errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, known));
  errors.push(...checkTypeFor(schema, path, "object", "if x-kubernetes-map-type is specified"));
  return errors;
}
