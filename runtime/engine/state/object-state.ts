import { isNewer, type ResourceVersion } from "../../base/resource-version.ts";
import type { ObjectMembers, ObjectMeta } from "../../informer/scan/change.ts";
import type { KnownIdentity } from "../../journal/batch.ts";
import type { EventType } from "../../manifest/function.ts";
import type { LastState, RedeliveryRisk } from "../redelivery/possible-redeliveries.ts";

/** The fields of an event that the known objects read and record. */
export interface ObjectEvent {
  readonly type: EventType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** True for a `Deleted` that a list or a scope change found, rather than a watch. */
  readonly lastKnown: boolean;
  /** The event's resourceVersion; for a `Deleted` that was found, the newest that it may have: changes up to it are not news. */
  readonly deletedBy: ResourceVersion;
  /** The epoch in which its resourceVersions are compared. */
  readonly epoch: number;
  readonly redeliveryRisk: RedeliveryRisk;
  /** True if the body was fetched from the API server, so it is not the event's own state, and is not stored. */
  readonly isFetched: boolean;
  /** Byte ranges of the object's members in the body, if the scanner recorded them. */
  readonly members?: ObjectMembers | undefined;
}

/** The fields of an event, other than its body, that a filter reads. */
export type FilteredEventFields = Pick<ObjectEvent, "type" | "key" | "redeliveryRisk" | "members">;

/** The fields of an event that are recorded while it waits. */
export interface ExpectedEvent extends Pick<ObjectEvent, "type" | "key" | "deletedBy" | "epoch"> {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
}

/** The state of an object after all of its waiting events. */
export interface ObjectState extends LastState {
  readonly deleted: boolean;
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
