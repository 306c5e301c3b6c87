import type { EventType } from "../../manifest/function.ts";
import type { ResourceVersion } from "../../resource-version.ts";

/** What an event's id is made of. */
export interface Identity {
  readonly type: EventType;
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
  /** Made by a diff: its resourceVersion is only the last one known. */
  readonly lastKnown: boolean;
  /** Objects can come and go without being created or deleted, because of a selector or a scope. */
  readonly selective: boolean;
  readonly epoch: number;
}

/**
 * The handler's idempotency key, unique within a trigger: `uid/resourceVersion/type`. A deletion happens once, so it is
 * `uid/Deleted` whether it was watched or found. Where selectors make objects come and go it names the resourceVersion,
 * with a `~` where only the last one is known. After the first epoch, `@epoch` follows.
 */
export function eventId({ type, uid, resourceVersion, lastKnown, selective, epoch }: Identity): string {
  const suffix = epoch === 0 ? "" : `@${epoch}`;
  if (type !== "Deleted") return `${uid}/${resourceVersion}/${type}${suffix}`;
  return selective ? `${uid}/${resourceVersion}${lastKnown ? "~" : ""}/Deleted${suffix}` : `${uid}/Deleted${suffix}`;
}

/** The uid that an event id begins with. */
export const uidOf = (id: string): string => id.slice(0, id.indexOf("/"));

/** The epoch that an event id ends with, behind its type: a uid may have such a sign as well. */
export const epochOf = (id: string): number => {
  const at = id.indexOf("@", id.lastIndexOf("/"));
  return at < 0 ? 0 : Number(id.slice(at + 1));
};
