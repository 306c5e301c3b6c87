import { isNewer, isUpTo } from "../../base/resource-version.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
import type { LastState } from "../redelivery/possible-redeliveries.ts";

/** The state of an object after all of its waiting events. */
export interface ObjectState extends LastState {
  readonly deleted: boolean;
}

/**
 * Whether a change is no newer than the state of its object. If resourceVersions cannot be ordered, only an equal one is stale,
 * and so is the deletion of an object that is known to be deleted.
 */
export function isStale(state: ObjectState, { type, meta }: Change): boolean {
  if (isUpTo(meta.resourceVersion, state.resourceVersion)) return true;
  return state.deleted && state.uid === meta.uid && type === "Deleted";
}

/** Whether an object differs from its record only in a later resourceVersion. */
export const differsOnlyInVersion = (
  before: KnownIdentity,
  { hash, matched, form, resourceVersion }: KnownIdentity,
): boolean =>
  before.hash === hash &&
  before.matched === matched &&
  before.form === form &&
  isNewer(resourceVersion, before.resourceVersion);
