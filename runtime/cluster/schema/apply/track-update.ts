import type { JsonObject } from "../json.ts";
import type { Schema } from "../schema.ts";
import { compareFields } from "./field-values.ts";
import { isReset, type ManagedFieldsEntry, managerIdentity, readManagers, writeManagers } from "./managers.ts";
import { blank, dispossess, ignoring, managedFieldsOf, ownable, timeText, withManagedFields } from "./ownership.ts";
import { deduced } from "./shape.ts";

/** Inputs for the tracking of a write that is not an apply: a create, an update, or one of the other patches. */
export interface UpdateRequest {
  /** The stored object; `undefined` for a create. */
  readonly before: JsonObject | undefined;
  /**
   * The object about to be stored, with its defaults. Its metadata.managedFields is what the client sent, if it sent any.
   */
  readonly after: JsonObject;
  /** The field manager of the request. Default: the first word of the user agent, up to a slash. */
  readonly manager: string;
  readonly operation: "Update";
  /** The version in the request's path: `v1`, `apps/v1`. */
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  readonly schema: Schema | undefined;
  /**
   * Paths that a client cannot set at this endpoint, such as `["status"]`. The write does not acquire ownership of them.
   */
  readonly resetFields?: readonly (readonly string[])[] | undefined;
  /** Wall time, in milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Returns the metadata.managedFields to store with `after`: the manager acquires the fields that it added or changed. If a client
 * has reset the managers with `[{}]`, the object has no managers until its next apply.
 */
export function trackUpdate(request: UpdateRequest): ManagedFieldsEntry[] {
  const { before, after } = request;
  const schema = request.schema ?? deduced;
  const sent = managedFieldsOf(after);
  if (!request.subresource && isReset(sent)) return [];
  const fromClient = request.subresource ? new Map() : readManagers(sent);
  const managers = fromClient.size > 0 ? fromClient : readManagers(managedFieldsOf(before));
  if (before && managers.size === 0) return [];

  const start = withManagedFields(before ?? blank(schema, after), []);
  const comparison = compareFields(start, withManagedFields(after, []), schema);
  const change = ignoring(comparison, request.resetFields ?? []);
  dispossess(managers, undefined, change);
  const fields = ownable(change.added.union(change.modified));
  if (!fields.isEmpty) {
    const manager = {
      name: request.manager,
      operation: request.operation,
      apiVersion: request.apiVersion,
      subresource: request.subresource ?? "",
    };
    const identity = managerIdentity(manager);
    const owned = managers.get(identity)?.fields.union(fields) ?? fields;
    managers.set(identity, { ...manager, time: timeText(request.now), fields: owned });
  }
  return writeManagers(managers);
}
