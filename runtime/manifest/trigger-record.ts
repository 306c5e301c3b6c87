import { z } from "zod";
import type { FunctionManifest, Schedule, Trigger } from "./function.ts";
import { scheduleKind } from "./schedule.ts";

/** Recorded fields of a trigger or a schedule, and the mode of its function, for comparison with an edited one. */
const triggerFields = z.looseObject({ mode: z.string() });
export type TriggerFields = z.infer<typeof triggerFields>;

/** A trigger or a schedule, in its present or recorded form. */
export interface TriggerRecord {
  readonly name: string;
  readonly resource: string;
  /** `undefined` if an older runtime recorded its name alone. */
  readonly fields: TriggerFields | undefined;
}

/** Returns `group/Kind`, which stays the same when a manifest names another version. */
export function resourceOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const slash = apiVersion.indexOf("/");
  return `${slash < 0 ? "" : apiVersion.slice(0, slash)}/${kind}`;
}

/** Resource of a schedule, which has no objects. */
export const scheduleResource = resourceOf(scheduleKind);

/** True for the resource of a trigger that fires without an object. Such a trigger has no known objects, and one cursor. */
export const hasNoObjects = (resource: string): boolean => resource === scheduleResource;

/** Returns a function's triggers of every kind. */
export const triggersOf = ({ triggers, schedules }: FunctionManifest) => [...triggers, ...schedules];

/** Returns the records of a function's triggers and schedules. */
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

/** Reads fields that were recorded as JSON. @throws SyntaxError, ZodError if the text is damaged */
export const readFields = (json: string | undefined): TriggerFields | undefined =>
  json === undefined ? undefined : triggerFields.parse(JSON.parse(json));

/**
 * Finds renamed triggers: a new name with the watch of a trigger whose name is gone. Among several with that watch, one with
 * identical fields is preferred. Two triggers may swap names, if at least one of them has identical fields.
 * @param aside suspended triggers, which return by name: their names take precedence over a watch
 * @returns the previous record of each renamed trigger
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
  // A cycle of equal watches alone is not a renaming: one of its members must have been found by identical fields.
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    find(watchOf, (was) => !stands(was));
  }
  // An unchanged name takes precedence over a watch that another trigger has now, unless both have swapped names.
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const [each, was] of found) if (stands(was)) found.delete(each);
  }
  return found;
}

/** Whether two records have the same name and kind. */
export const isSame = (one: TriggerRecord, other: TriggerRecord): boolean =>
  one.name === other.name && one.resource === other.resource;

/** Returns everything that defines a trigger except its name; `undefined` if it was not recorded. */
function allOf({ fields }: TriggerRecord): string | undefined {
  return fields && JSON.stringify({ ...fields, name: undefined, mode: undefined });
}

/** Returns the fields that determine a trigger's objects or times; `undefined` if they were not recorded. */
function watchOf({ fields }: TriggerRecord): string | undefined {
  if (!fields) return undefined;
  const { namespaces, labelSelector, fieldSelector, times } = fields;
  return JSON.stringify([namespaces, labelSelector, fieldSelector, times]);
}
