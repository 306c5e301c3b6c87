import { z } from "zod";
import type { FunctionManifest, Schedule, Trigger } from "./function.ts";
import { scheduleKind } from "./schedule.ts";

/** A trigger's or a schedule's fields, and the mode of its function: what is on record of it, to be compared with an edited one. */
const triggerFields = z.looseObject({ mode: z.string() });
export type TriggerFields = z.infer<typeof triggerFields>;

/** A trigger or a schedule as it is, or as it was when it was recorded. */
export interface TriggerRecord {
  readonly name: string;
  readonly resource: string;
  /** Undefined where an older runtime recorded its name alone. */
  readonly fields: TriggerFields | undefined;
}

/** `group/Kind`: what stays the same when a manifest names another version. */
export function resourceOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const slash = apiVersion.indexOf("/");
  return `${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`;
}

/** The resource of a schedule, which has no objects. */
export const scheduleResource = resourceOf(scheduleKind);

/** A function's triggers and schedules. */
export function recordsOf({
  triggers,
  schedules,
  delivery,
}: FunctionManifest): (TriggerRecord & { fields: TriggerFields })[] {
  const fieldsOf = (part: Trigger | Schedule): TriggerFields => ({ ...part, mode: delivery.mode });
  return [
    ...triggers.map((each) => ({ name: each.name, resource: resourceOf(each), fields: fieldsOf(each) })),
    ...schedules.map((each) => ({ name: each.name, resource: scheduleResource, fields: fieldsOf(each) })),
  ];
}

/** Reads fields back that were recorded as JSON. @throws SyntaxError, ZodError where the text is damaged */
export const readFields = (json: string | undefined): TriggerFields | undefined =>
  json === undefined ? undefined : triggerFields.parse(JSON.parse(json));

/**
 * Finds triggers that have another name than before: a new name with the watch of one whose name is gone. Of several with that watch,
 * one with all fields the same is meant. Two may swap names, where one of them at least has all its fields still.
 * @param aside what was set aside, and comes back by its name: that says more than a watch, too
 * @returns what each renamed one was before
 */
export function renamesOf<T extends TriggerRecord, B extends TriggerRecord>(
  after: readonly T[],
  before: readonly B[],
  aside: readonly TriggerRecord[] = [],
): ReadonlyMap<T, B> {
  const found = new Map<T, B>();
  const stands = (was: B) => after.some((each) => isSame(was, each) && !found.has(each));
  const find = (likeness: typeof allOf, isFree: (was: B) => boolean) => {
    const isLike = (was: B, each: T) => likeness(was) === likeness(each);
    const goesOn = (each: T) => before.some((was) => isSame(was, each) && (!was.fields || isLike(was, each)));
    for (const each of after) {
      if (found.has(each) || goesOn(each) || aside.some((one) => isSame(one, each))) continue;
      const taken = new Set(found.values());
      const isIt = (was: B) => !taken.has(was) && isFree(was) && was.resource === each.resource && isLike(was, each);
      const was = before.find(isIt);
      if (was) found.set(each, was);
    }
  };
  find(allOf, (was) => !after.some((each) => isSame(was, each) && allOf(was) === allOf(each)));
  // A circle of watches alone is no change of names: one of it was found by all its fields.
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    find(watchOf, (was) => !stands(was));
  }
  // A name that stands says more than a watch that another trigger has now, unless both have changed places.
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const [each, was] of found) if (stands(was)) found.delete(each);
  }
  return found;
}

/** Whether two have one name, for one kind. */
export const isSame = (one: TriggerRecord, other: TriggerRecord): boolean =>
  one.name === other.name && one.resource === other.resource;

/** All that a trigger says but its name; undefined where that was not recorded. */
function allOf({ fields }: TriggerRecord): string | undefined {
  return fields && JSON.stringify({ ...fields, name: undefined, mode: undefined });
}

/** What of a trigger says which objects, or which times, are its own; undefined where that was not recorded. */
function watchOf({ fields }: TriggerRecord): string | undefined {
  if (!fields) return undefined;
  const { namespaces, labelSelector, fieldSelector, times } = fields;
  return JSON.stringify([namespaces, labelSelector, fieldSelector, times]);
}
