import { applyDefaults } from "../defaults.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Schema } from "../schema.ts";
import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import type { Comparison } from "./field-values.ts";
import type { Manager, Managers } from "./managers.ts";

const unowned = systemFields();

function systemFields(): FieldSet {
  const fields = new FieldSetBuilder();
  for (const name of ["apiVersion", "kind", "metadata"]) fields.insert([`f:${name}`]);
  const metadata = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion";
  for (const name of metadata.split(" ")) fields.insert(["f:metadata", `f:${name}`]);
  return fields.build();
}

/** Returns the set without the system's fields, which no manager owns: an object's name, its uid and the like. */
export function ownable(fields: FieldSet): FieldSet {
  return fields.difference(unowned);
}

/** Returns a comparison without the fields that an endpoint ignores, such as `[["status"]]`. */
export function ignoring(comparison: Comparison, resetFields: readonly (readonly string[])[]): Comparison {
  const paths = resetFields.map((path) => path.map((name) => `f:${name}`));
  return {
    added: comparison.added.without(paths),
    modified: comparison.modified.without(paths),
    removed: comparison.removed.without(paths),
  };
}

/**
 * Takes the fields that a write removed or changed from every manager but its writer. Returns the managers that lose changed
 * fields, each with only those fields; for an apply, these are the conflicts.
 */
export function dispossess(managers: Managers, writer: string | undefined, change: Comparison): Manager[] {
  const losers: Manager[] = [];
  const set = change.modified.union(change.added);
  for (const [identity, manager] of managers) {
    if (identity === writer) continue;
    const lost = manager.fields.intersection(set);
    if (!lost.isEmpty) losers.push({ ...manager, fields: lost });
    managers.set(identity, { ...manager, fields: manager.fields.difference(lost).difference(change.removed) });
  }
  return losers;
}

/**
 * Returns the initial state of an object of the kind. For a built-in kind this is the zero value of its Go structure, whose parts
 * exist without an owner.
 */
export function blank(schema: Schema, object: JsonObject): JsonObject {
  const bare: JsonObject = { apiVersion: object.apiVersion ?? null, kind: object.kind ?? null, metadata: {} };
  return schema.builtIn ? withNulls(applyDefaults(schema, bare), schema) : bare;
}

/** Adds a null for each missing required list or structure, as Go writes it. */
function withNulls(object: JsonObject, schema: Schema): JsonObject {
  const whole: JsonObject = {};
  for (const name of schema.required ?? []) whole[name] = null;
  for (const [name, value] of Object.entries(object)) {
    const field = schema.properties?.[name];
    whole[name] = field && isObject(value) ? withNulls(value, field) : value;
  }
  return whole;
}

/** Returns the object's metadata.managedFields. */
export function managedFieldsOf(object: JsonObject | undefined): Json | undefined {
  return isObject(object?.metadata) ? object.metadata.managedFields : undefined;
}

/**
 * Returns the object with these entries as its metadata.managedFields, or without the field if there are no entries.
 */
export function withManagedFields(object: JsonObject, entries: Json[]): JsonObject {
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata: entries.length > 0 ? { ...metadata, managedFields: entries } : metadata };
}

/** Formats a time for managedFields: RFC 3339 in whole seconds. */
export function timeText(now: number): string {
  return new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
}
