import type { JsonObject } from "../json.ts";
import type { Schema } from "../schema.ts";
import { compareFields } from "./field-values.ts";
import { isReset, type ManagedFieldsEntry, managerIdentity, readManagers, writeManagers } from "./managers.ts";
import { blank, dispossess, ignoring, managedFieldsOf, ownable, timeText, withManagedFields } from "./ownership.ts";
import { deduced } from "./shape.ts";

/** What a write that is no apply is made of: a create, an update, or one of the other patches. */
export interface UpdateRequest {
  /** The stored object; undefined for a create. */
  readonly before: JsonObject | undefined;
  /** The object about to be stored, defaults included; its metadata.managedFields is what the client sent, if it did. */
  readonly after: JsonObject;
  /** The field manager that the request names; else the first word of its user agent, up to a slash. */
  readonly manager: string;
  readonly operation: "Update";
  /** The version that the request names: `v1`, `apps/v1`. */
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  readonly schema: Schema | undefined;
  /** Paths that this endpoint does not let a client set, such as `["status"]`: nobody comes to own them here. */
  readonly resetFields?: readonly (readonly string[])[] | undefined;
  /** Wall time, milliseconds since the epoch. */
  readonly now: number;
}

/**
 * The metadata.managedFields to store with `after`: the manager comes to own what it added or changed. An object that
 * has no managers any more (a client reset them with `[{}]`) gets none before its next apply.
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
