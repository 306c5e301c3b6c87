import { isObject, type Json, member } from "../json.ts";
import type { Schema } from "../schema.ts";
import { fieldPath } from "./errors.ts";
import { canonical, keysOf } from "./list-types.ts";

/**
 * A part of a value, with the stored part in its place. `old` is `undefined` if there is no stored part, or if it cannot be
 * identified.
 */
interface Child {
  readonly value: Json;
  readonly old: Json | undefined;
  readonly schema: Schema;
  readonly path: string;
}

/**
 * Yields a value's children, each with its schema and its stored value. `entryPath` formats the path of a map's entry for errors.
 */
export function* childrenOf(
  value: Json,
  old: Json | undefined,
  schema: Schema,
  path: string,
  entryPath = fieldPath,
): Generator<Child> {
  if (Array.isArray(value) && schema.items) {
    const stored = storedItems(old, schema);
    for (const [index, item] of value.entries()) {
      yield { value: item, old: stored(item), schema: schema.items, path: `${path}[${index}]` };
    }
  } else if (isObject(value)) {
    const rest = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
    for (const name of Object.keys(value).sort()) {
      const own = schema.properties && Object.hasOwn(schema.properties, name);
      const child = own ? schema.properties?.[name] : rest;
      const before = isObject(old) ? member(old, name) : undefined;
      const at = own ? fieldPath(path, name) : entryPath(path, name);
      if (child) yield { value: value[name] ?? null, old: before, schema: child, path: at };
    }
  }
}

/**
 * Finds the stored item for an item of a list, by its keys if the list is a map. An item of any other list is treated as new.
 */
function storedItems(old: Json | undefined, schema: Schema): (item: Json) => Json | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(old)) return () => undefined;
  const byKeys = new Map<string, Json>();
  for (const item of old) if (isObject(item)) byKeys.set(canonical(keysOf(item, schema)), item);
  return (item) => (isObject(item) ? byKeys.get(canonical(keysOf(item, schema))) : undefined);
}
