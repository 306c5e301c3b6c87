import { renamesOf, type TriggerFields, type TriggerRecord } from "./trigger-record.ts";

/** What of a function waits while its manifest is edited; undefined where nobody knows. */
export interface Waiting {
  /** Events on disk. */
  readonly events: number;
  /** Keys that are to be reconciled. */
  readonly keys: number;
}

/** A field that decides what is told, and what its edit does to records and to what waits. */
interface Effect {
  readonly field: string;
  readonly does: (waiting: Waiting | undefined, before: unknown, after: unknown) => string;
}

const ofBodies = "bodies on record of the other form are not used: `oldObject` is absent until an object changes";
const ofWaiting = (waiting: Waiting | undefined): string =>
  count(waiting?.events, "waiting event is read", "waiting events are read", "anew from the API server");

const effects: readonly Effect[] = [
  { field: "apiVersion", does: (waiting) => `${ofBodies}, ${ofWaiting(waiting)}` },
  { field: "object", does: (waiting) => `${ofBodies}, ${ofWaiting(waiting)}` },
  { field: "lastBody", does: () => ofBodies },
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
    does: (waiting) =>
      `${count(waiting?.keys, "waiting key runs", "waiting keys run")}, and the next change of an object wakes its keys of both rules`,
  },
  {
    field: "mode",
    does: (waiting, before, after) => {
      if (before === "Reconcile")
        return `${count(waiting?.keys, "waiting key is told", "waiting keys are told", "as events of the objects that woke them")}`;
      return after === "Reconcile"
        ? `${count(waiting?.events, "waiting event wakes its key", "waiting events wake their keys")}`
        : "it counts for what waits as well";
    },
  },
  { field: "times", does: () => "the schedule begins from now" },
];

const selected = "objects that it selects now are told as Added, and those that it lets go as Deleted";

/**
 * Describes what an edit of a function's manifest does to what is known and to what waits. Returns one line for each field that
 * decides it, and one for each trigger that was renamed; none where nothing of the kind was edited.
 */
export function editsOf(
  after: readonly TriggerRecord[],
  before: readonly TriggerRecord[],
  waiting?: Waiting,
): readonly string[] {
  const renamed = renamesOf(after, before);
  const lines = after.flatMap((each) => {
    const was =
      renamed.get(each) ?? before.find(({ name, resource }) => name === each.name && resource === each.resource);
    const rename = renamed.has(each)
      ? [`trigger ${each.name} was called ${was?.name}: its position, its known objects and what waits go on`]
      : [];
    return [...rename, ...(was?.fields && each.fields ? changesOf(each.name, was.fields, each.fields, waiting) : [])];
  });
  return [...new Set(lines)];
}

function changesOf(name: string, before: TriggerFields, after: TriggerFields, waiting: Waiting | undefined): string[] {
  return effects.flatMap(({ field, does }) => {
    const [was, is] = [before[field], after[field]];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    const values = typeof was === "string" && typeof is === "string" ? ` from ${shown(was)} to ${shown(is)}` : "";
    // The mode is the function's.
    const whose = field === "mode" ? "" : `trigger ${name}: `;
    return [`${whose}${field} changed${values}: ${does(waiting, was, is)}`];
  });
}

const shown = (value: string): string => (value === "" ? "none" : value);

function count(number: number | undefined, one: string, many: string, rest = ""): string {
  const text = number === undefined ? many : number === 1 ? `1 ${one}` : `${number} ${many}`;
  return rest === "" ? text : `${text} ${rest}`;
}
