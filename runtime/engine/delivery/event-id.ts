import type { ResourceVersion } from "../../base/resource-version.ts";
import type { EventType } from "../../manifest/function.ts";

/** What an event's id is made of. */
interface EventIdentity {
  /** The trigger's lasting identity, as its view has it. */
  readonly trigger: string;
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
 * The handler's idempotency key, unique within a function: `trigger:uid/resourceVersion/type`. A deletion happens once, so it
 * is `trigger:uid/Deleted` whether it was watched or found. Where selectors make objects come and go it names the
 * resourceVersion, with a `~` where only the last one is known. After the first epoch, `@epoch` follows.
 */
export function eventId({ trigger, type, uid, resourceVersion, lastKnown, selective, epoch }: EventIdentity): string {
  const suffix = epoch === 0 ? "" : `@${epoch}`;
  const object = `${trigger}${separator}${uid}`;
  if (type !== "Deleted") return `${object}/${resourceVersion}/${type}${suffix}`;
  return selective
    ? `${object}/${resourceVersion}${lastKnown ? "~" : ""}/Deleted${suffix}`
    : `${object}/Deleted${suffix}`;
}

/** Behind the trigger's identity, which has no such sign. */
const separator = ":";

/** The id with its trigger's identity, which older runtimes left out. */
export const withTrigger = (id: string, trigger: string): string =>
  id.startsWith(`${trigger}${separator}`) ? id : `${trigger}${separator}${id}`;

/** The uid that an event id names. */
export const uidOf = (id: string): string => id.slice(id.indexOf(separator) + 1, id.indexOf("/"));

/** The epoch that an event id ends with, behind its type: a uid may have such a sign as well. */
export const epochOf = (id: string): number => {
  const at = id.indexOf("@", id.lastIndexOf("/"));
  return at < 0 ? 0 : Number(id.slice(at + 1));
};
