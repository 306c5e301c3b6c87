import { isObject, type Json, type JsonObject, member, setMember } from "../json.ts";
import type { Schema } from "../schema.ts";
import type { PathElement } from "./field-set.ts";
import { childSchema, deduced, listItems, shapeOf } from "./shape.ts";

/**
 * Returns the live object with every field of the configuration set in it. Lists that are maps or sets are merged by item.
 */
export function mergeFields(live: JsonObject, applied: JsonObject, schema: Schema): JsonObject {
  const merged = merge(live, applied, schema, true);
  return isObject(merged) ? merged : {};
}

function merge(live: Json | undefined, applied: Json, schema: Schema, top: boolean): Json {
  if (live === undefined || shapeOf(live, schema) !== shapeOf(applied, schema)) {
    // A null does not remove the items of a list or the fields of a structure.
    const keep = applied === null && live !== undefined && shapeOf(live, schema) !== "leaf" && !isBare(live);
    return keep ? live : applied;
  }
  if (Array.isArray(live) && Array.isArray(applied)) {
    return shapeOf(applied, schema) === "leaf" ? applied : mergeLists(live, applied, schema);
  }
  if (!isObject(live) || !isObject(applied) || shapeOf(applied, schema) === "leaf") return applied;
  const merged = { ...live };
  for (const [name, value] of Object.entries(applied)) {
    setMember(merged, name, merge(member(live, name), value, childSchema(schema, name, top) ?? deduced, false));
  }
  return merged;
}

function isBare(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** Returns the applied items in their order. The live items that were not applied keep their places between them. */
function mergeLists(live: readonly Json[], applied: readonly Json[], schema: Schema): Json[] {
  const items = schema.items ?? deduced;
  const lefts = listItems(live, schema);
  const rights = listItems(applied, schema);
  const liveItem = new Map<PathElement, Json>();
  for (const { element, item } of lefts) if (!liveItem.has(element)) liveItem.set(element, item);
  const isApplied = new Set(rights.map(({ element }) => element));
  // Elements in both lists, in the order of the result.
  const shared = rights.map(({ element }) => element).filter((element) => liveItem.has(element));
  const out: Json[] = [];
  const done = new Set<PathElement>();
  let right = 0;
  const takeRight = (): void => {
    const entry = rights[right++];
    if (!entry) return;
    out.push(merge(liveItem.get(entry.element), entry.item, items, false));
    done.add(entry.element);
    if (shared[0] === entry.element) shared.shift();
  };
  for (const { element, item } of lefts) {
    if (!isApplied.has(element)) out.push(item);
    else if (!done.has(element) && element === shared[0]) {
      // Every applied item up to this one precedes the items that follow it in the live list.
      while (!done.has(element)) takeRight();
    }
  }
  while (right < rights.length) takeRight();
  return out;
}
