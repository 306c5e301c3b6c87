import { z } from "zod";
import { type CheckpointStore, resourceOf, type StoredView, type ViewRecord } from "../checkpoint/store.ts";
import type { FunctionManifest, Schedule, Trigger } from "../manifest/function.ts";
import { scheduleKind } from "../manifest/schedule.ts";

/** The resource of a schedule's view. */
export const scheduleResource = resourceOf(scheduleKind);

/** A trigger or a schedule with its view, as the store has that. */
export interface TriggerView {
  readonly view: StoredView;
  readonly record: TriggerRecord;
  /** The trigger as its records were written under it before; undefined where that was not noted, or there was none. */
  readonly before: TriggerRecord | undefined;
  /** What the trigger was called before; undefined where it has its name still. */
  readonly renamedFrom: string | undefined;
}

/** What is noted of a trigger: its part of the manifest, and the mode of its function. */
const triggerRecord = z.looseObject({ mode: z.string() });
export type TriggerRecord = z.infer<typeof triggerRecord>;

interface Wanted {
  readonly name: string;
  readonly resource: string;
  readonly record: TriggerRecord;
}

/**
 * Finds or creates the view of each trigger and schedule of a function. A new name with the watch of a trigger that is gone
 * is a rename. The trigger keeps its known objects, its positions and its event ids.
 * @returns by trigger and schedule name
 */
export async function openViews(
  store: CheckpointStore,
  { name, triggers, schedules, delivery }: FunctionManifest,
): Promise<ReadonlyMap<string, TriggerView>> {
  const recordOf = (part: Trigger | Schedule): TriggerRecord => ({ ...part, mode: delivery.mode });
  const wanted: Wanted[] = [
    ...triggers.map((each) => ({ name: each.name, resource: resourceOf(each), record: recordOf(each) })),
    ...schedules.map((each) => ({ name: each.name, resource: scheduleResource, record: recordOf(each) })),
  ];
  const live = await store.views(name);
  const retired = (await store.retiredViews()).filter((view) => view.function === name);
  const renamed = renamedViews(wanted, live);
  await store.recordViews(renames(renamed, [...live, ...retired]));
  const opened = new Map<string, TriggerView>();
  const records: ViewRecord[] = [];
  const identities = new Set([...live, ...retired].map(({ identity }) => identity));
  for (const { name: trigger, resource, record } of wanted) {
    const found = await store.openView(name, trigger, resource);
    const before = [...live, ...retired].find(({ id }) => id === found.id);
    const identity = before?.identity ?? unused(trigger, identities);
    identities.add(identity);
    const manifest = JSON.stringify(record);
    if (manifest !== before?.manifest || identity !== found.identity)
      records.push({ id: found.id, trigger, identity, manifest });
    opened.set(trigger, {
      view: { ...found, identity, manifest },
      record,
      before: before && recorded(before),
      renamedFrom: before && before.trigger !== trigger ? before.trigger : undefined,
    });
  }
  await store.recordViews(records);
  return opened;
}

/** Views that a trigger of another name takes, by that trigger. */
function renamedViews(wanted: readonly Wanted[], live: readonly StoredView[]): ReadonlyMap<Wanted, StoredView> {
  const watches = new Map(live.map((view) => [view, watchOf(recorded(view))]));
  const byName = ({ name, resource }: Wanted) =>
    live.find((view) => view.trigger === name && view.resource === resource);
  const goesOn = (each: Wanted) => {
    const named = byName(each);
    const watch = named && watches.get(named);
    return named !== undefined && (watch === undefined || watch === watchOf(each.record));
  };
  const taken = new Set(wanted.filter(goesOn).map(byName));
  const found = new Map<Wanted, StoredView>();
  for (const each of wanted.filter((one) => !goesOn(one))) {
    const isThis = (view: StoredView) =>
      !taken.has(view) && view.resource === each.resource && watches.get(view) === watchOf(each.record);
    const view = live.find(isThis);
    if (!view) continue;
    taken.add(view);
    found.set(each, view);
  }
  // A name that stands says more than a watch that another trigger has now, unless both have changed places.
  const stands = ({ trigger, resource }: StoredView) =>
    wanted.some((each) => each.name === trigger && each.resource === resource && !found.has(each));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [each, view] of found) if (stands(view)) found.delete(each);
  }
  return found;
}

/** Gives views their new names. What else has such a name is left without one: no trigger asks for it. */
function renames(found: ReadonlyMap<Wanted, StoredView>, all: readonly StoredView[]): ViewRecord[] {
  const moved = new Set([...found.values()].map(({ id }) => id));
  return [...found].flatMap(([{ name, resource }, { id, identity, manifest }]) => {
    const other = all.find((view) => view.trigger === name && view.resource === resource && !moved.has(view.id));
    const nameless = other && { ...other, trigger: `${name}.${other.id}` };
    return [...(nameless ? [nameless] : []), { id, trigger: name, identity, manifest }];
  });
}

/** An identity that no view of the function has or had. A trigger's name holds no dot. */
function unused(trigger: string, identities: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const identity = number === 1 ? trigger : `${trigger}.${number}`;
    if (!identities.has(identity)) return identity;
  }
}

const recorded = ({ manifest }: StoredView): TriggerRecord | undefined =>
  manifest === undefined ? undefined : triggerRecord.parse(JSON.parse(manifest));

/** What of a trigger says which objects, or which times, are its own. */
function watchOf(record: TriggerRecord | undefined): string | undefined {
  if (!record) return undefined;
  const { namespaces, labelSelector, fieldSelector, times } = record;
  return JSON.stringify([namespaces, labelSelector, fieldSelector, times]);
}
