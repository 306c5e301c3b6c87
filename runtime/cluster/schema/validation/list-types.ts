import { encodeJson } from "../../exact-json.ts";
import type { FieldError } from "../field-error.ts";
import { isObject, type Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { duplicate, invalid } from "./errors.ts";

/** Reports duplicates in a list that is a set or a map. */
export function checkListType(value: readonly Json[], schema: Schema, path: string): FieldError[] {
  const listType = schema["x-kubernetes-list-type"];
  // A built-in kind's lists may contain duplicates: only server-side apply refuses them.
  if (schema.builtIn || (listType !== "set" && listType !== "map")) return [];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  value.forEach((item, index) => {
    const at = `${path}[${index}]`;
    if (listType === "map" && !isObject(item)) {
      errors.push(invalid(at, item, "must be an object for an array of list-type map"));
      return;
    }
    const key = listType === "map" && isObject(item) ? keysOf(item, schema) : item;
    const text = canonical(key);
    if (seen.has(text)) errors.push(duplicate(at, key));
    seen.add(text);
  });
  return errors;
}

/** The keys of an item of a list that is a map, without those that are absent. */
export function keysOf(item: Record<string, Json>, schema: Schema): Json {
  const names = schema["x-kubernetes-list-map-keys"] ?? [];
  return Object.fromEntries(names.filter((name) => item[name] !== undefined).map((name) => [name, item[name] ?? null]));
}

/** Formats a value so that equal values have the same text, whatever the order of their members. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return encodeJson(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] ?? null)}`).join(",")}}`;
}
