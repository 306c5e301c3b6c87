import { isObject, type Json } from "../json.ts";
import { fieldSchema, objectMeta } from "../prune.ts";
import type { Schema } from "../schema.ts";
import { keyElement, type PathElement, valueElement } from "./field-set.ts";

/**
 * How server-side apply treats a field. `leaf`: owned as a whole. `map`: owned field by field. `set` and `keyed`: lists that are
 * owned item by item.
 */
type Shape = "leaf" | "map" | "set" | "keyed";

/** The schema of a field that the kind's schema does not describe. */
export const deduced: Schema = { "x-kubernetes-preserve-unknown-fields": true };

/** The shape of a value under its schema; a value whose type is not the schema's is a leaf. */
export function shapeOf(value: Json | undefined, schema: Schema): Shape {
  if (isObject(value)) return mapShape(schema);
  if (!Array.isArray(value)) return "leaf";
  const listType = schema["x-kubernetes-list-type"];
  return listType === "map" ? "keyed" : listType === "set" ? "set" : "leaf";
}

function mapShape(schema: Schema): Shape {
  if (schema["x-kubernetes-map-type"] === "atomic") return "leaf";
  if (schema.type === "object" || schema["x-kubernetes-preserve-unknown-fields"] || schema.properties) return "map";
  return "leaf";
}

/** The schema of an object's field. If the object is a whole resource, this includes metadata. */
export function childSchema(schema: Schema, name: string, top: boolean): Schema | undefined {
  const resource = !schema.builtIn && (top || schema["x-kubernetes-embedded-resource"]);
  if (resource && name === "metadata") return objectMeta();
  if (resource && (name === "apiVersion" || name === "kind")) return { type: "string" };
  const free = schema.type === "object" && !schema.properties && schema.additionalProperties === undefined;
  return fieldSchema(schema, name) ?? (free ? deduced : undefined);
}

/** True if the schema declares the name as a field, so that it is not a key of a map. */
export function isNamedField(schema: Schema, name: string, top: boolean): boolean {
  const resource = !schema.builtIn && (top || schema["x-kubernetes-embedded-resource"]);
  if (resource && ["apiVersion", "kind", "metadata"].includes(name)) return true;
  return schema.properties !== undefined && Object.hasOwn(schema.properties, name);
}

/** A list's items, each with its path element. An item without the list's keys is identified by its index. */
export function listItems(list: readonly Json[], schema: Schema): { element: PathElement; item: Json }[] {
  return list.map((item, index) => ({ element: itemElement(item, schema) ?? `i:${index}`, item }));
}

/** The path element of a list item; `undefined` if the item lacks the list's keys. */
export function itemElement(item: Json, schema: Schema): PathElement | undefined {
  if (schema["x-kubernetes-list-type"] !== "map") return isObject(item) ? undefined : valueElement(item);
  if (!isObject(item)) return undefined;
  const keys: [string, Json][] = [];
  for (const name of schema["x-kubernetes-list-map-keys"] ?? []) {
    const value = item[name] ?? schema.items?.properties?.[name]?.default;
    if (value !== undefined && value !== null) keys.push([name, value]);
  }
  return keys.length > 0 ? keyElement(Object.fromEntries(keys)) : undefined;
}
