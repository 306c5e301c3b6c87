import type { Cause } from "../../checkpoint/batch.ts";

/** Causes that are told of one run: which triggers woke it, and the first objects to look at. */
const mostCauses = 16;

/**
 * Adds a cause to what is told of a run, oldest first. Of one object and trigger the last is told. Of too many the oldest go.
 * Gives the list as it was where the cause is there already.
 */
export function withCause(causes: readonly Cause[], cause: Cause): readonly Cause[] {
  const same = causes.find((each) => isOfOne(each, cause));
  if (same?.type === cause.type) return causes;
  return [...causes.filter((each) => each !== same), cause].slice(-mostCauses);
}

const isOfOne = (one: Cause, other: Cause): boolean =>
  one.trigger === other.trigger &&
  one.namespace === other.namespace &&
  one.name === other.name &&
  (one.trigger !== undefined || one.type === other.type);
