import { isNewer, isUpTo } from "../../base/resource-version.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";

/** Where an object will stand when all that waits for it is done. */
export interface ObjectState extends LastState {
  readonly deleted: boolean;
}

/**
 * Whether it is a deletion that carries the last state's own resourceVersion, as APIs send that are not etcd's. The object
 * stands, so the deletion is news, wherever the mark is by then.
 */
export const endsAsItWas = (standing: ObjectState, { type, meta }: Change): boolean =>
  type === "Deleted" &&
  !standing.deleted &&
  standing.uid === meta.uid &&
  standing.resourceVersion === meta.resourceVersion;

/**
 * Whether a change is no newer than where its object stands. Where resourceVersions cannot be ordered only the same one
 * is, and the deletion of an object that is known to be deleted.
 */
export function isStale(standing: ObjectState, { type, meta }: Change): boolean {
  if (isUpTo(meta.resourceVersion, standing.resourceVersion)) return true;
  return standing.deleted && standing.uid === meta.uid && type === "Deleted";
}

/** Whether an object differs from what is on record in a later resourceVersion alone. */
export const standsBut = (before: KnownIdentity, { hash, matched, form, resourceVersion }: KnownIdentity): boolean =>
  before.hash === hash &&
  before.matched === matched &&
  before.form === form &&
  isNewer(resourceVersion, before.resourceVersion);
