import { isObject, type Json, type JsonObject, jsonEqual, setMember } from "../json.ts";
import type { Schema } from "../schema.ts";
import { FieldSet, FieldSetBuilder, type PathElement } from "./field-set.ts";
import { childSchema, deduced, isNamedField, listItems, shapeOf } from "./shape.ts";

/** The elements of a map, set or keyed list, each with its value and schema. */
function children(value: Json, schema: Schema, top: boolean): { element: PathElement; item: Json; schema: Schema }[] {
  if (Array.isArray(value)) {
    return listItems(value, schema).map((child) => ({ ...child, schema: schema.items ?? deduced }));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).map(([name, item]) => ({
    element: `f:${name}`,
    item,
    schema: childSchema(schema, name, top) ?? deduced,
  }));
}

/** Returns the fields that a configuration sets. A manager that applies it owns them. */
export function fieldsOf(object: JsonObject, schema: Schema): FieldSet {
  const fields = new FieldSetBuilder();
  const collect = (value: Json, type: Schema, path: readonly PathElement[], top: boolean): void => {
    if (shapeOf(value, type) === "leaf") {
      if (!Array.isArray(value) || !isGranular(type)) fields.insert(path);
      return;
    }
    for (const child of children(value, type, top)) {
      const childPath = [...path, child.element];
      collect(child.item, child.schema, childPath, false);
      const named = child.element.startsWith("f:") && isNamedField(type, child.element.slice(2), top);
      if (!named || child.item === null || isEmptyObject(child.item)) fields.insert(childPath);
    }
  };
  collect(object, schema, [], true);
  return fields.build();
}

function isGranular(schema: Schema): boolean {
  const listType = schema["x-kubernetes-list-type"];
  return listType === "map" || listType === "set";
}

function isEmptyObject(value: Json): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

/** The fields that a write added, modified and removed. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Compares two objects field by field. When a field is added or removed, so is everything below it. */
export function compareFields(before: JsonObject, after: JsonObject, schema: Schema): Comparison {
  const added = new FieldSetBuilder();
  const modified = new FieldSetBuilder();
  const removed = new FieldSetBuilder();

  const compare = (
    left: Json | undefined,
    right: Json | undefined,
    type: Schema,
    path: readonly PathElement[],
    top: boolean,
  ): void => {
    // Go writes a null for a field of a built-in kind that was not set.
    if (type.builtIn && (left ?? null) === null && (right ?? null) === null) return;
    const leftShape = isNothing(left) ? undefined : shapeOf(left, type);
    const rightShape = isNothing(right) ? undefined : shapeOf(right, type);
    const bothEmpty = isBare(left) && isBare(right);
    if (leftShape && rightShape && leftShape !== rightShape && !bothEmpty) {
      compareParts(left, undefined, type, path, top);
      compareParts(undefined, right, type, path, top);
      if (leftShape === "leaf" || rightShape === "leaf") modified.insert(path);
      return;
    }
    const shape = rightShape ?? leftShape ?? "leaf";
    if (shape !== "leaf" && !bothEmpty) compareParts(left, right, type, path, top);
    if (path.length === 0) return;
    if (left === undefined) added.insert(path);
    else if (right === undefined) removed.insert(path);
    else if ((shape === "leaf" || bothEmpty) && !jsonEqual(left, right)) modified.insert(path);
  };

  const compareParts = (
    left: Json | undefined,
    right: Json | undefined,
    type: Schema,
    path: readonly PathElement[],
    top: boolean,
  ): void => {
    if (shapeOf(left ?? right, type) === "leaf") return;
    const lefts = grouped(children(left ?? null, type, top));
    const rights = grouped(children(right ?? null, type, top));
    for (const [element, group] of lefts) {
      const other = rights.get(element);
      compare(group.value, other?.value, group.schema, [...path, element], false);
    }
    for (const [element, group] of rights) {
      if (!lefts.has(element)) compare(undefined, group.value, group.schema, [...path, element], false);
    }
  };
  compare(before, after, schema, [], true);
  return { added: added.build(), modified: modified.build(), removed: removed.build() };
}

function isNothing(value: Json | undefined): boolean {
  return value === undefined || value === null;
}

/** True for a missing value, null, and an empty container. */
function isBare(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : isEmptyObject(value);
}

/**
 * Groups the items by element. Items that share one (a stored list may hold duplicates) are compared together, as one value.
 */
function grouped(items: { element: PathElement; item: Json; schema: Schema }[]) {
  const groups = new Map<PathElement, { value: Json; schema: Schema; several: boolean }>();
  for (const { element, item, schema } of items) {
    const group = groups.get(element);
    if (!group) groups.set(element, { value: item, schema, several: false });
    else if (group.several && Array.isArray(group.value)) group.value.push(item);
    else groups.set(element, { value: [group.value, item], schema: { type: "array" }, several: true });
  }
  return groups;
}

/** Returns the object without those fields and without containers that become empty. */
export function removeFields(object: JsonObject, fields: FieldSet, schema: Schema): JsonObject {
  const removed = remove(object, fields, schema, true);
  return isObject(removed) ? removed : {};
}

function remove(value: Json, fields: FieldSet, schema: Schema, top: boolean): Json | undefined {
  if (fields.isEmpty || shapeOf(value, schema) === "leaf") return value;
  const kept: { element: PathElement; item: Json }[] = [];
  for (const child of children(value, schema, top)) {
    if (fields.members.has(child.element)) continue;
    const item = remove(child.item, fields.below(child.element), child.schema, false);
    if (item !== undefined) kept.push({ element: child.element, item });
  }
  if (kept.length === 0) return undefined;
  if (Array.isArray(value)) return kept.map(({ item }) => item);
  const object: JsonObject = {};
  for (const { element, item } of kept) setMember(object, element.slice(2), item);
  return object;
}

/**
 * Adds to the set each field that the schema names and below which the set has members. A structure belongs to every manager that
 * owns a part of it.
 */
export function withNamedFields(fields: FieldSet, schema: Schema, top = true): FieldSet {
  const members = new Set(fields.members);
  const below = new Map<PathElement, FieldSet>();
  for (const [element, child] of fields.children) {
    const isField = element.startsWith("f:");
    if (isField && isNamedField(schema, element.slice(2), top)) members.add(element);
    const type = isField ? childSchema(schema, element.slice(2), top) : schema.items;
    below.set(element, withNamedFields(child, type ?? deduced, false));
  }
  return new FieldSet(members, below);
}
