import { isUpTo } from "../../resource-version.ts";
import type { Change } from "../../watch/change.ts";
import type { KnownObject } from "../doubt/doubted-objects.ts";

/** Where an object will stand when all that waits for it is done. */
export interface Standing extends KnownObject {
  readonly deleted: boolean;
}

/**
 * Whether it is a deletion of the object that stands, in its last state or a later one. It is news then, wherever the mark
 * is: APIs that are not etcd's send a deletion with the last state's own resourceVersion. That state may have said nothing,
 * and after a kill an earlier one is on record.
 */
export const endsIt = (standing: Standing, { type, meta }: Change): boolean =>
  type === "Deleted" &&
  !standing.deleted &&
  standing.uid === meta.uid &&
  isUpTo(standing.resourceVersion, meta.resourceVersion);

/**
 * Whether a change is no newer than where its object stands. Where resourceVersions cannot be ordered only the same one
 * is, and the deletion of an object that is known to be deleted.
 */
export function isStale(standing: Standing, { type, meta }: Change): boolean {
  if (isUpTo(meta.resourceVersion, standing.resourceVersion)) return true;
  return standing.deleted && standing.uid === meta.uid && type === "Deleted";
}
