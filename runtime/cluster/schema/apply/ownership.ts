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

/** The set without the fields that are the system's own, and nobody's: an object's name, its uid and the like. */
export function ownable(fields: FieldSet): FieldSet {
  return fields.difference(unowned);
}

/** A comparison without the fields that an endpoint ignores, such as `[["status"]]`. */
export function ignoring(comparison: Comparison, resetFields: readonly (readonly string[])[]): Comparison {
  const paths = resetFields.map((path) => path.map((name) => `f:${name}`));
  return {
    added: comparison.added.without(paths),
    modified: comparison.modified.without(paths),
    removed: comparison.removed.without(paths),
  };
}

/**
 * Takes from every manager but the one that wrote the fields that the write removed, or set otherwise than before.
 * Returns the managers that lose fields set otherwise, each with just those fields: the conflicts, if it was an apply.
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
 * What an object of the kind is before anything is written. For a built-in kind that is the zero value of its Go
 * structure, whose parts exist without anyone owning them.
 */
export function blank(schema: Schema, object: JsonObject): JsonObject {
  const bare: JsonObject = { apiVersion: object.apiVersion ?? null, kind: object.kind ?? null, metadata: {} };
  return schema.builtIn ? withNulls(applyDefaults(schema, bare), schema) : bare;
}

/** With a null for each required list or structure, as Go writes one that is not there. */
function withNulls(object: JsonObject, schema: Schema): JsonObject {
  const whole: JsonObject = {};
  for (const name of schema.required ?? []) whole[name] = null;
  for (const [name, value] of Object.entries(object)) {
    const field = schema.properties?.[name];
    whole[name] = field && isObject(value) ? withNulls(value, field) : value;
  }
  return whole;
}

/** metadata.managedFields as it stands in the object. */
export function managedFieldsOf(object: JsonObject | undefined): Json | undefined {
  return isObject(object?.metadata) ? object.metadata.managedFields : undefined;
}

/** The object with (or, with none, without) metadata.managedFields. */
export function withManagedFields(object: JsonObject, entries: Json[]): JsonObject {
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata: entries.length > 0 ? { ...metadata, managedFields: entries } : metadata };
}

/** A time as managedFields holds it: RFC 3339 to the second. */
export function timeText(now: number): string {
  return new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
}
