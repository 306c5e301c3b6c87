import { goKind, goText } from "../go-text.ts";
import { isObject, type Json, type JsonObject, member, setMember } from "../json.ts";
import type { Schema } from "../schema.ts";
import { checkOrder, mergeByKey, mergePrimitives } from "./merge-list.ts";
import { PatchError } from "./patch-error.ts";

const deleteFrom = "$deleteFromPrimitiveList/";
const orderOf = "$setElementOrder/";
const unknown: Schema = {};

/**
 * Applies a Kubernetes strategic merge patch: a merge patch in which the schema says how lists are merged (`patchStrategy`,
 * `patchMergeKey`). Its directives are `$patch`, `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList`. Only built-in
 * kinds support it. Throws a PatchError.
 */
export function strategicMergePatch(original: JsonObject, patch: Json, schema: Schema): JsonObject {
  if (!isObject(patch)) {
    throw new PatchError(400, `json: cannot unmarshal ${goKind(patch)} into Go value of type map[string]interface {}`);
  }
  try {
    return mergeMap(original, patch, schema);
  } catch (error) {
    if (!(error instanceof PatchError) || error.code !== 422) throw error;
    const shown = JSON.stringify(goText(patch));
    throw new PatchError(422, ` "" is invalid: patch: Invalid value: ${shown}: ${error.message}`);
  }
}

/** Merges one object into another. */
function mergeMap(original: JsonObject, patch: JsonObject, schema: Schema): JsonObject {
  const { $patch: directive, $retainKeys: retain, ...fields } = patch;
  if (directive === "replace") return withoutDirectives(fields);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    throw new PatchError(500, `unknown patch type: ${goText(directive)} in map: ${goText(patch)}`);
  }
  const merged = retain === undefined ? { ...original } : retained(original, retain, fields);
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith(deleteFrom)) deletePrimitives(merged, name.slice(deleteFrom.length), value);
    else if (name.startsWith(orderOf)) orderList(merged, name.slice(orderOf.length), fields, value, schema);
    else if (!Array.isArray(value) || fields[orderOf + name] === undefined) {
      mergeField(merged, name, value, undefined, schema);
    }
  }
  return merged;
}

function mergeField(merged: JsonObject, name: string, value: Json, order: Json[] | undefined, schema: Schema): void {
  if (value === null) {
    delete merged[name];
    return;
  }
  const field = fieldOf(schema, name);
  const old = member(merged, name);
  const strategy = (field["x-kubernetes-patch-strategy"] ?? "").split(",");
  if (isObject(old) && isObject(value) && !strategy.includes("replace")) {
    setMember(merged, name, mergeMap(old, value, field));
  } else if (Array.isArray(value) && Array.isArray(old) && strategy.includes("merge")) {
    setMember(merged, name, mergeList(old, value, order, field));
  } else if (field.type === "array" && !Array.isArray(value)) {
    throw new PatchError(422, `cannot restore slice from ${goKind(value)}`);
  } else setMember(merged, name, isObject(value) ? withoutDirectives(value) : withoutListDirectives(value));
}

function fieldOf(schema: Schema, name: string): Schema {
  if (schema.properties && Object.hasOwn(schema.properties, name)) return schema.properties[name] ?? unknown;
  return typeof schema.additionalProperties === "object" ? schema.additionalProperties : unknown;
}

function mergeList(old: Json[], patch: Json[], order: Json[] | undefined, field: Schema): Json[] {
  const key = field["x-kubernetes-patch-merge-key"];
  if (order) checkOrder(patch, order, key);
  if (key === undefined) return mergePrimitives(old, patch, order);
  const merge = (left: JsonObject, right: JsonObject): JsonObject => mergeMap(left, right, field.items ?? unknown);
  return mergeByKey(old, patch, { key, order, merge, fresh: withoutDirectives });
}

/** Sorts a list by the directive's order after merging the patch of the same list into it. */
function orderList(merged: JsonObject, name: string, fields: JsonObject, order: Json, schema: Schema): void {
  if (!Array.isArray(order)) throw new PatchError(400, "invalid patch format of setElementOrder list");
  const patch = member(fields, name) ?? [];
  if (Array.isArray(patch) && (patch.length > 0 || member(merged, name) !== undefined)) {
    mergeField(merged, name, patch, order, schema);
  }
}

function deletePrimitives(merged: JsonObject, name: string, values: Json): void {
  const old = member(merged, name);
  if (!Array.isArray(values)) throw new PatchError(400, "invalid patch format of delete primitive list");
  if (Array.isArray(old)) {
    setMember(
      merged,
      name,
      old.filter((item) => !values.includes(item)),
    );
  }
}

/**
 * Returns the object with only the fields that the directive names. The directive must name all fields that the patch sets.
 */
function retained(original: JsonObject, names: Json, patch: JsonObject): JsonObject {
  const kept = Array.isArray(names) ? names : [];
  const sets = Object.keys(patch).filter((name) => patch[name] !== null && !name.startsWith("$"));
  if (!Array.isArray(names) || sets.some((name) => !kept.includes(name))) {
    throw new PatchError(400, "invalid patch format of retainKeys");
  }
  return Object.fromEntries(Object.entries(original).filter(([name]) => kept.includes(name)));
}

/** Removes directives and nulls from a value that the original does not contain. */
function withoutDirectives(value: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, child] of Object.entries(value)) {
    const isDirective = name === "$patch" || name === "$retainKeys" || name.startsWith(orderOf);
    if (child === null || isDirective || name.startsWith(deleteFrom)) continue;
    setMember(kept, name, isObject(child) ? withoutDirectives(child) : withoutListDirectives(child));
  }
  return kept;
}

function withoutListDirectives(value: Json): Json {
  if (!Array.isArray(value)) return value;
  const kept = value.filter((item) => !(isObject(item) && (item.$patch === "delete" || item.$patch === "replace")));
  return kept.map((item) => (isObject(item) ? withoutDirectives(item) : item));
}
