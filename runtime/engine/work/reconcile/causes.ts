import type { Cause } from "../../../journal/batch.ts";
import type { Seen } from "../../delivery/delivery.ts";

/** A cause as the process has it that saw it. */
export interface Waking extends Cause {
  /** Of a change: its state. It is in no row: after a restart all reads are listed anew, and are newer. */
  readonly seen?: Seen | undefined;
  /** A handler had begun with the change as an event, before its function reconciled: the run is flagged. */
  readonly hasBegun?: boolean | undefined;
}

/** Causes that are told of one run: which triggers woke it, and the first objects to look at. */
const mostCauses = 16;

/** Shared, since a function may have 100,000 keys that nothing new has woken. */
export const noCauses: readonly Waking[] = [];

/** Of a key that its handler asked for. Shared as well. */
export const requeued: readonly Waking[] = [{ type: "Requeue" }];

/** Adds a cause to what is told of a run, oldest first. Of one object and trigger the last is told. Of too many the oldest go. */
export function withCause(causes: readonly Waking[], cause: Waking): readonly Waking[] {
  const same = causes.find((each) => isOfOne(each, cause));
  // Only the first that went can be what the last run saw.
  const replaced = same?.replaced ?? (same?.type === "Deleted" && cause.type !== "Deleted" ? same.uid : undefined);
  const newer = replaced === undefined ? cause : { ...cause, replaced };
  if (same?.type === cause.type) return causes.map((each) => (each === same ? newer : each));
  return [...causes.filter((each) => each !== same), newer].slice(-mostCauses);
}

/** Whether there may have been others, which went. */
export const hasLostCauses = (causes: readonly Cause[]): boolean => causes.length >= mostCauses;

/** Whether a run is told of it anyway, and its row says as much of it. */
export const hasCause = (causes: readonly Cause[], cause: Cause): boolean =>
  causes.some((each) => each.type === cause.type && each.told === cause.told && isOfOne(each, cause));

/** Whether it is the deletion of an object that an edit let go of. */
export const isByEdit = ({ type, seen }: Waking): boolean => type === "Deleted" && seen?.flags?.reason === "unselected";

/** As it is kept, or told. */
export const causeAlone = ({ seen: _, hasBegun: __, ...cause }: Waking): Cause => cause;

const isOfOne = (one: Cause, other: Cause): boolean =>
  one.trigger === other.trigger &&
  one.namespace === other.namespace &&
  one.name === other.name &&
  (one.trigger !== undefined || one.type === other.type);
