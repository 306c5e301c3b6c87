import { isObject, type Json, type JsonObject } from "../json.ts";
import { FieldSet } from "./field-set.ts";

/** An entry of metadata.managedFields. */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  /** RFC 3339, to the second. */
  readonly time?: string;
  readonly fieldsType: "FieldsV1";
  readonly fieldsV1: JsonObject;
  readonly subresource?: string;
}

/** An owner of fields, identified by its name, the operation by which it writes, and the subresource. */
export interface Manager {
  readonly name: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** The managers of an object, by identity. */
export type Managers = Map<string, Manager>;

/** Maximum number of managers with updates per object; older ones are merged into one (client-go's default). */
const maxUpdateManagers = 10;

/**
 * The identity of a manager. One that applies has a single entry for all versions; one that updates has one per version.
 */
export function managerIdentity(manager: Omit<Manager, "time" | "fields">): string {
  const version = manager.operation === "Apply" ? "" : manager.apiVersion;
  return JSON.stringify([manager.name, manager.operation, version, manager.subresource]);
}

/** Reads metadata.managedFields. If one entry cannot be read, the result is empty. */
export function readManagers(entries: Json | undefined): Managers {
  const managers: Managers = new Map();
  for (const entry of Array.isArray(entries) ? entries : []) {
    const { operation } = isObject(entry) ? entry : {};
    if (!isObject(entry) || !isObject(entry.fieldsV1) || (operation !== "Apply" && operation !== "Update")) {
      return new Map();
    }
    const manager: Manager = {
      name: String(entry.manager ?? ""),
      operation,
      apiVersion: String(entry.apiVersion ?? ""),
      subresource: String(entry.subresource ?? ""),
      time: typeof entry.time === "string" ? entry.time : undefined,
      fields: FieldSet.parse(entry.fieldsV1),
    };
    managers.set(managerIdentity(manager), manager);
  }
  return managers;
}

/** True if a client asks to reset all managers: `managedFields: [{}]`. */
export function isReset(entries: Json | undefined): boolean {
  const [entry] = Array.isArray(entries) ? entries : [];
  return Array.isArray(entries) && entries.length === 1 && isObject(entry) && Object.keys(entry).length === 0;
}

/** Formats metadata.managedFields: managers that apply first, then by age. A manager without fields has no entry. */
export function writeManagers(managers: Managers): ManagedFieldsEntry[] {
  const owners = capped([...managers.values()].filter((manager) => !manager.fields.isEmpty));
  return owners.sort(inOrder).map((manager) => ({
    manager: manager.name,
    operation: manager.operation,
    apiVersion: manager.apiVersion,
    ...(manager.time === undefined ? {} : { time: manager.time }),
    fieldsType: "FieldsV1",
    fieldsV1: manager.fields.format(),
    ...(manager.subresource === "" ? {} : { subresource: manager.subresource }),
  }));
}

function inOrder(left: Manager, right: Manager): number {
  return (
    compare(left.operation, right.operation) ||
    compare(left.time ?? "", right.time ?? "") ||
    compare(left.name, right.name) ||
    compare(left.apiVersion, right.apiVersion) ||
    compare(left.subresource, right.subresource)
  );
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Merges the oldest managers beyond the limit of updates into one per version, named `ancient-changes`. */
function capped(managers: Manager[]): Manager[] {
  const updates = managers.filter((manager) => manager.operation === "Update").sort(inOrder);
  const excess = updates.length - maxUpdateManagers;
  if (excess <= 0) return managers;
  const kept = new Map<string, Manager>();
  const old = new Set(updates.slice(0, excess + 1));
  for (const manager of old) {
    const merged = kept.get(manager.apiVersion);
    const fields = merged ? merged.fields.union(manager.fields) : manager.fields;
    kept.set(manager.apiVersion, { ...manager, name: "ancient-changes", subresource: "", fields });
  }
  return [...managers.filter((manager) => !old.has(manager)), ...kept.values()];
}
