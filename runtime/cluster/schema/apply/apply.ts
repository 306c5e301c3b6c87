import { isObject, type Json, type JsonObject, jsonEqual } from "../json.ts";
import { PatchError } from "../patch/patch-error.ts";
import type { Schema } from "../schema.ts";
import { type Conflict, conflictMessage, conflictsWith } from "./conflict.ts";
import { FieldSet } from "./field-set.ts";
import { compareFields, fieldsOf, removeFields, withNamedFields } from "./field-values.ts";
import { type Manager, type Managers, managerIdentity, readManagers, writeManagers } from "./managers.ts";
import { mergeFields } from "./merge-fields.ts";
import { blank, dispossess, ignoring, managedFieldsOf, ownable, timeText, withManagedFields } from "./ownership.ts";
import { deduced } from "./shape.ts";
import { typeError } from "./type-check.ts";

/** Inputs of one server-side apply. */
export interface ApplyRequest {
  /** The stored object; `undefined` if the apply creates it. */
  readonly live: JsonObject | undefined;
  /** The configuration: exactly the fields that the manager sets. */
  readonly applied: JsonObject;
  readonly manager: string;
  /** The version in the request's path: `v1`, `apps/v1`. */
  readonly apiVersion: string;
  /** True to take over fields that other managers own. */
  readonly force: boolean;
  readonly schema: Schema | undefined;
  readonly subresource?: string | undefined;
  /**
   * Paths that a client cannot set at this endpoint, such as `["status"]`. The apply does not acquire ownership of them.
   */
  readonly resetFields?: readonly (readonly string[])[] | undefined;
  /** Wall time, in milliseconds since the epoch. */
  readonly now: number;
}

/**
 * The result of an apply: `object` with its managedFields; or the conflicts with the message of the 409 Status; or the error that
 * refuses the request.
 */
export type ApplyResult =
  | { readonly object: JsonObject; readonly conflicts?: undefined; readonly error?: undefined }
  | { readonly conflicts: Conflict[]; readonly message: string; readonly error?: undefined }
  | { readonly error: PatchError; readonly conflicts?: undefined };

/**
 * Server-side apply: sets the fields of the configuration, and removes fields that this manager applied before, no longer
 * applies, and no other manager owns. If nothing changes, the result equals `live`, times included, and need not be stored. The
 * result still holds `live`'s fields that the endpoint resets, and lacks the defaults.
 */
export function serverSideApply(request: ApplyRequest): ApplyResult {
  const { live, applied, force } = request;
  const schema = request.schema ?? deduced;
  const refused = refusal(request, schema);
  if (refused) return { error: refused };

  const start = withManagedFields(live ?? blank(schema, applied), []);
  const managers = readManagers(managedFieldsOf(live));
  if (live && managers.size === 0) adopt(managers, start, schema, request);

  const writer = { name: request.manager, operation: "Apply", apiVersion: request.apiVersion } as const;
  const manager = { ...writer, subresource: request.subresource ?? "" };
  const identity = managerIdentity(manager);
  const before = managers.get(identity);
  const paths = (request.resetFields ?? []).map((path) => path.map((name) => `f:${name}`));
  const fields = ownable(fieldsOf(applied, schema)).without(paths);
  managers.set(identity, { ...manager, time: before?.time, fields });

  const merged = mergeFields(start, applied, schema);
  const pruned = before ? dropAbandoned(merged, before.fields, managers, schema) : merged;
  const change = ignoring(compareFields(start, pruned, schema), request.resetFields ?? []);
  const losers = dispossess(managers, identity, change);
  if (losers.length > 0 && !force) {
    const conflicts = conflictsWith(losers);
    return { conflicts, message: conflictMessage(conflicts) };
  }
  const unchanged = live !== undefined && jsonEqual(start, pruned);
  if (unchanged && sameOwners(managers, managedFieldsOf(live))) return { object: live };
  // Acquiring ownership of existing values is not a change, so the manager's time stays.
  if (!unchanged) managers.set(identity, { ...manager, time: timeText(request.now), fields });
  return { object: withManagedFields(pruned, writeManagers(managers) as unknown as Json[]) };
}

function refusal({ applied, apiVersion }: ApplyRequest, schema: Schema): PatchError | undefined {
  const metadata = isObject(applied.metadata) ? applied.metadata : {};
  if (applied.apiVersion !== apiVersion) {
    return new PatchError(
      400,
      `Incorrect version specified in apply patch. Specified patch version: ${applied.apiVersion}, expected: ${apiVersion}`,
    );
  }
  if (metadata.managedFields !== undefined) return new PatchError(400, "metadata.managedFields must be nil");
  const error = typeError(applied, schema);
  if (error === undefined) return undefined;
  const [version, group] = apiVersion.split("/").reverse();
  const of = `${metadata.namespace ?? ""}/${metadata.name ?? ""}; ${group ?? ""}/${version}, Kind=${applied.kind}`;
  return new PatchError(500, `failed to create typed patch object (${of}): ${error}`);
}

/**
 * Assigns the fields of an object without managers to `before-first-apply`. Otherwise an apply could take all of them without a
 * conflict.
 */
function adopt(managers: Managers, object: JsonObject, schema: Schema, request: ApplyRequest): void {
  const change = ignoring(compareFields(blank(schema, object), object, schema), request.resetFields ?? []);
  const manager: Manager = {
    name: "before-first-apply",
    operation: "Update",
    apiVersion: request.apiVersion,
    subresource: "",
    time: timeText(request.now),
    fields: ownable(change.added.union(change.modified)),
  };
  if (!manager.fields.isEmpty) managers.set(managerIdentity(manager), manager);
}

/**
 * Removes the fields that the manager owned by its last apply, unless a manager (itself by this apply included) owns them now.
 */
function dropAbandoned(merged: JsonObject, last: FieldSet, managers: Managers, schema: Schema): JsonObject {
  if (last.isEmpty) return merged;
  const named = (fields: FieldSet): FieldSet => withNamedFields(fields, schema);
  const all = named(fieldsOf(merged, schema));
  const bare = removeFields(merged, named(last), schema);
  let owned = FieldSet.empty;
  for (const manager of managers.values()) owned = owned.union(named(manager.fields));
  // First restores the fields that a manager owns, with those below them; then the fields that the last apply did not own.
  const back = removeFields(merged, all.difference(named(fieldsOf(bare, schema)).union(owned)), schema);
  return removeFields(merged, all.difference(named(fieldsOf(back, schema))).intersection(named(last)), schema);
}

function sameOwners(managers: Managers, entries: Json | undefined): boolean {
  const old = readManagers(entries);
  const owners = [...managers].filter(([, manager]) => !manager.fields.isEmpty);
  return (
    owners.length === old.size &&
    owners.every(([identity, manager]) => {
      const was = old.get(identity);
      return was?.apiVersion === manager.apiVersion && was.fields.equals(manager.fields);
    })
  );
}
