import { isSame, renamesOf, type TriggerFields, type TriggerRecord } from "./trigger-record.ts";

/** Pending work of a function while its manifest is edited; `undefined` if unknown. */
export interface WaitingWork {
  /** Events on disk. */
  readonly events: number;
  /** Keys to be reconciled; each is on disk. */
  readonly keys: number;
}

/** A field with an effect on deliveries, and what its edit does to records and pending work. */
interface Effect {
  readonly field: string;
  readonly does: (waiting: WaitingWork | undefined, before: unknown, after: unknown) => string;
  /** Mode in which the field has an effect, before and after the edit; absent: in every mode. */
  readonly within?: string;
}

const ofBodies = "bodies on record of the other form are not used: `oldObject` is absent until an object changes";
const cutBodies = "of bodies on record the metadata is used";
const ofWaiting = (waiting: WaitingWork | undefined): string =>
  count(waiting?.events, "event on disk is read", "events on disk are read", "anew from the API server");

const effects: readonly Effect[] = [
  { field: "apiVersion", does: (waiting) => `${ofBodies}, ${ofWaiting(waiting)}` },
  {
    field: "object",
    does: (waiting, _before, after) =>
      after === "Metadata"
        ? `${cutBodies}, ${count(waiting?.events, "event on disk is", "events on disk are", "told with it alone")}`
        : `${ofBodies}, ${ofWaiting(waiting)}`,
  },
  { field: "lastBody", does: (_waiting, _before, after) => (after === "Metadata" ? cutBodies : ofBodies) },
  { field: "namespaces", does: () => selected },
  { field: "labelSelector", does: () => selected },
  { field: "fieldSelector", does: () => selected },
  { field: "events", does: () => "it counts for changes from now on" },
  {
    field: "changedFields",
    does: () => "the last whole body says whether they changed; without one the next change is told",
  },
  { field: "matchConditions", does: () => "they judge the next change of each object; answers on record are not used" },
  {
    field: "key",
    // Keys exist in this mode only.
    within: "Reconcile",
    does: (waiting) =>
      `${count(waiting?.keys, "waiting key runs", "waiting keys run")}, and the next change of an object wakes its keys of both rules`,
  },
  {
    field: "mode",
    does: (waiting, before, after) => {
      if (before === "Reconcile")
        return `${count(waiting?.keys, "waiting key is told", "waiting keys are told", "as events of the objects that woke them")}`;
      return after === "Reconcile"
        ? `${count(waiting?.events, "event on disk wakes its key", "events on disk wake their keys")}`
        : "it counts for what waits as well";
    },
  },
  { field: "times", does: () => "the schedule begins from now" },
];

const selected = "objects that it selects now are told as Added, and those that it lets go as Deleted";

/**
 * Describes what an edit of a function's manifest does to known objects and pending work. Returns one line for each field with an
 * effect, and one for each trigger that was renamed or removed.
 * @param aside suspended triggers of the previous manifest
 */
export function editsOf(
  after: readonly TriggerRecord[],
  before: readonly TriggerRecord[],
  waiting?: WaitingWork,
  aside: readonly TriggerRecord[] = [],
): readonly string[] {
  const renamed = renamesOf(after, before, aside);
  const known = [...before, ...aside];
  const found = new Map(after.map((each) => [each, renamed.get(each) ?? known.find((one) => isSame(one, each))]));
  const goOn = new Set(found.values());
  // The checkpoint of resyncs is among them, although it has no fields in a manifest.
  const gone = before.filter((each) => each.fields && !goOn.has(each));
  return [
    ...editsBetween(found, waiting),
    ...gone.map(({ name, resource }) => {
      const kind = resource.slice(resource.indexOf("/") + 1);
      return `trigger ${name} of ${kind} is gone: what waits for it is kept for seven days`;
    }),
  ];
}

/**
 * Returns one line for each trigger that was renamed and for each changed field.
 * @param triggers each trigger with its previous version, `undefined` for a new one
 */
export function editsBetween(
  triggers: Iterable<readonly [TriggerRecord, TriggerRecord | undefined]>,
  waiting?: WaitingWork,
): readonly string[] {
  const lines = [...triggers].flatMap(([{ name, fields }, was]) => {
    const rename =
      was && was.name !== name
        ? [`trigger ${name} was called ${was.name}: its position, its known objects and what waits go on`]
        : [];
    return [...rename, ...(was?.fields && fields ? changesOf(name, was.fields, fields, waiting) : [])];
  });
  return [...new Set(lines)];
}

function changesOf(
  name: string,
  before: TriggerFields,
  after: TriggerFields,
  waiting: WaitingWork | undefined,
): string[] {
  return effects.flatMap(({ field, does, within }) => {
    const [was, is] = [before[field], after[field]];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    if (within !== undefined && [before, after].some(({ mode }) => mode !== within)) return [];
    const values = typeof was === "string" && typeof is === "string" ? ` from ${shown(was)} to ${shown(is)}` : "";
    // The mode belongs to the function.
    const whose = field === "mode" ? "" : `trigger ${name}: `;
    return [`${whose}${field} changed${values}: ${does(waiting, was, is)}`];
  });
}

const shown = (value: string): string => (value === "" ? "none" : value);

function count(number: number | undefined, one: string, many: string, rest = ""): string {
  const text = number === undefined ? many : number === 1 ? `1 ${one}` : `${number} ${many}`;
  return rest === "" ? text : `${text} ${rest}`;
}
