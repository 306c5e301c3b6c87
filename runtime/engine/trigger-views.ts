import type { SpillHeader } from "../journal/batch.ts";
import { type Checkpoint, type StoredView, spillByTurns, type ViewRecord } from "../journal/checkpoint.ts";
import { editsOf, type WaitingWork } from "../manifest/edits.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { readFields, recordsOf, renamesOf, type TriggerRecord } from "../manifest/trigger-record.ts";
import { hasLostCauses } from "./work/key-lane.ts";

/** The stored record of a trigger. */
interface RecordedTrigger extends TriggerRecord {
  readonly view: StoredView;
}

/**
 * Finds or creates the view of each trigger and schedule of a function. A trigger that was renamed keeps its known objects, its
 * checkpoints and its event ids.
 * @returns by trigger and schedule name
 */
export async function openViews(
  store: Checkpoint,
  manifest: FunctionManifest,
): Promise<ReadonlyMap<string, StoredView>> {
  const { name } = manifest;
  const wanted = recordsOf(manifest);
  const { live, retired } = await recordedTriggers(store, name);
  const all = [...live, ...retired];
  await store.recordViews(renames(renamesOf(wanted, live, retired), all));
  const opened = new Map<string, StoredView>();
  const records: ViewRecord[] = [];
  for (const { name: trigger, resource, fields } of wanted) {
    const found = await store.openView(name, trigger, resource);
    const before = all.find(({ view }) => view.id === found.id);
    const others = [...all.map(({ view }) => view), ...opened.values()].filter(({ id }) => id !== found.id);
    const identity = before && isItsOwn(before.view, others) ? before.view.identity : unused(trigger, others);
    const text = JSON.stringify(fields);
    if (text !== before?.view.manifest) records.push({ id: found.id, trigger, identity, manifest: text });
    opened.set(trigger, { ...found, identity, manifest: text });
  }
  await store.recordViews(records);
  return opened;
}

/** Returns a function's triggers as they are recorded: those in use, and those that it no longer has. */
async function recordedTriggers(store: Checkpoint, functionName: string) {
  const retired = (await store.retiredViews()).filter((view) => view.function === functionName);
  return { live: (await store.views(functionName)).map(recorded), retired: retired.map(recorded) };
}

/** Renames views. Another view with such a name is left without one, since no trigger uses it. */
function renames(found: ReadonlyMap<TriggerRecord, RecordedTrigger>, all: readonly RecordedTrigger[]): ViewRecord[] {
  const moved = new Set([...found.values()].map(({ view }) => view));
  return [...found].flatMap(([{ name, resource }, { view }]) => {
    const other = all.find((each) => each.name === name && each.resource === resource && !moved.has(each.view));
    const nameless = other && { ...other.view, trigger: `${name}.${other.view.id}` };
    return [...(nameless ? [nameless] : []), { ...view, trigger: name }];
  });
}

/**
 * Whether a view's identity is certain. For a view without a recorded identity the store returns its name, which a renamed view
 * of the resource may have as its identity.
 */
const isItsOwn = ({ identity, manifest, resource }: StoredView, others: readonly StoredView[]): boolean =>
  manifest !== undefined || others.every((each) => each.identity !== identity || each.resource !== resource);

/** Returns an identity that no other view of the function has. A trigger's name never contains a dot. */
function unused(trigger: string, others: readonly StoredView[]): string {
  const identities = new Set(others.map(({ identity }) => identity));
  for (let number = 1; ; number++) {
    const identity = number === 1 ? trigger : `${trigger}.${number}`;
    if (!identities.has(identity)) return identity;
  }
}

const recorded = (view: StoredView): RecordedTrigger => ({
  name: view.trigger,
  resource: view.resource,
  fields: readFields(view.manifest),
  view,
});

/**
 * Describes what a manifest changes in a function's checkpoints, one line each, with counts of what waits on disk. Must be called
 * before the manifest's views are opened. Reads the rows that wait, without bodies, only if something changed.
 */
export async function editsOnRecord(store: Checkpoint, manifest: FunctionManifest): Promise<readonly string[]> {
  const after = recordsOf(manifest);
  const { live, retired } = await recordedTriggers(store, manifest.name);
  if (editsOf(after, live, retired).length === 0) return [];
  const headers: SpillHeader[] = [];
  for await (const header of spillByTurns(store, manifest.name)) headers.push(header);
  return editsOf(after, live, retired, ({ view }: RecordedTrigger) => waitingOf(view, headers));
}

function waitingOf({ id, identity }: StoredView, headers: readonly SpillHeader[]): WaitingWork {
  const waiting = { events: 0, keys: 0, woken: 0 };
  for (const header of headers) {
    if (header.kind === "key") {
      const { causes } = header.pending;
      if (header.view === id) waiting.keys++;
      // A key with more causes than are recorded may have been woken by any trigger.
      if (hasLostCauses(causes) || causes.some(({ trigger }) => trigger === identity)) waiting.woken++;
    } else if (header.view === id) waiting.events++;
  }
  return waiting;
}
