import { isSame, renamesOf, type TriggerFields, type TriggerRecord } from "./trigger-record.ts";

/** Pending work on disk of a trigger that is edited. */
export interface WaitingWork {
  readonly events: number;
  /** Keys to be reconciled, under the trigger whose objects they name. */
  readonly keys: number;
  /** Keys that an object of this trigger woke. */
  readonly woken: number;
}

/** A field with an effect on deliveries, and what its edit does to records and pending work. */
interface Effect {
  readonly field: string;
  readonly does: (waiting: WaitingWork | undefined, before: unknown, after: unknown) => string;
  /** Mode in which the field has an effect, before and after the edit; absent: in every mode. */
  readonly within?: string;
}

const ofBodies = "stored bodies of the other form are not used: `oldObject` is absent until an object changes";
const cutBodies = "only the metadata of stored bodies is used";
const readAnew = (waiting: WaitingWork | undefined): string => `${all(waiting)} read again from the API server`;

const effects: readonly Effect[] = [
  { field: "apiVersion", does: (waiting) => `${ofBodies}, ${readAnew(waiting)}` },
  {
    field: "object",
    does: (waiting, _before, after) =>
      after === "Metadata"
        ? `${cutBodies}, ${all(waiting)} delivered with metadata only`
        : `${ofBodies}, ${readAnew(waiting)}`,
  },
  { field: "lastBody", does: (_waiting, _before, after) => (after === "Metadata" ? cutBodies : ofBodies) },
  { field: "namespaces", does: () => selected },
  { field: "labelSelector", does: () => selected },
  { field: "fieldSelector", does: () => selected },
  { field: "events", does: () => "it counts for changes from now on" },
  {
    field: "changedFields",
    does: () => "the last whole body says whether they changed; without one the next change is delivered",
  },
  { field: "matchConditions", does: () => "they apply to the next change of each object; stored results are not used" },
  {
    field: "key",
    // Keys exist in this mode only.
    within: "Reconcile",
    does: (waiting) =>
      `${count(waiting?.woken, "waiting key runs", "waiting keys run")}, and the next change of an object wakes its keys of both rules`,
  },
  {
    field: "mode",
    does: (waiting, before, after) => {
      if (before === "Reconcile")
        return `${count(waiting?.keys, "waiting key is delivered", "waiting keys are delivered")} as events of the objects that woke them`;
      return after === "Reconcile"
        ? count(waiting?.events, "event on disk wakes its key", "events on disk wake their keys")
        : "it counts for what waits as well";
    },
  },
  { field: "times", does: () => "the schedule begins from now" },
];

const selected = "objects that it selects now are delivered as Added, and those that it no longer selects as Deleted";

/**
 * Describes what an edit of a function's manifest does to known objects and pending work. Returns one line for each field with an
 * effect, and one for each trigger that was renamed or removed.
 * @param aside suspended triggers of the previous manifest
 * @param waitingOf returns what waits for a trigger of the previous manifest. Default: unknown
 */
export function editsOf<Before extends TriggerRecord>(
  after: readonly TriggerRecord[],
  before: readonly Before[],
  aside: readonly Before[] = [],
  waitingOf?: (was: Before) => WaitingWork,
): readonly string[] {
  const renamed = renamesOf(after, before, aside);
  const known = [...before, ...aside];
  const pairs = after.flatMap((is) => {
    const was = renamed.get(is) ?? known.find((one) => isSame(one, is));
    return was ? [{ is, was, waiting: waitingOf?.(was) }] : [];
  });
  const goOn = new Set(pairs.map(({ was }) => was));
  const whole = waitingOf && totalOf(pairs.flatMap(({ waiting }) => waiting ?? []));
  const lines = pairs.flatMap(({ is: { name, fields }, was, waiting }) => [
    ...(was.name === name
      ? []
      : [`trigger ${name} was called ${was.name}: its checkpoint, its known objects and its waiting events continue`]),
    ...(was.fields && fields ? changesOf(name, was.fields, fields, { own: waiting, whole }) : []),
  ]);
  // The checkpoint of resyncs is among them, although it has no fields in a manifest.
  const gone = before.filter((each) => each.fields && !goOn.has(each));
  return [
    // The mode changes with each trigger.
    ...new Set(lines),
    ...gone.map((was) => {
      const { name, resource } = was;
      const kind = resource.slice(resource.indexOf("/") + 1);
      return `trigger ${name} of ${kind} is gone: what waits for it${inBrackets(waitingOf?.(was))} is kept for seven days`;
    }),
  ];
}

function changesOf(
  name: string,
  before: TriggerFields,
  after: TriggerFields,
  { own, whole }: { readonly own: WaitingWork | undefined; readonly whole: WaitingWork | undefined },
): string[] {
  return effects.flatMap(({ field, does, within }) => {
    const [was, is] = [before[field], after[field]];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    if (within !== undefined && [before, after].some(({ mode }) => mode !== within)) return [];
    const values = typeof was === "string" && typeof is === "string" ? ` from ${shown(was)} to ${shown(is)}` : "";
    // The mode belongs to the function.
    const [whose, waiting] = field === "mode" ? ["", whole] : [`trigger ${name}: `, own];
    return [`${whose}${field} changed${values}: ${does(waiting, was, is)}`];
  });
}

const totalOf = (all: readonly WaitingWork[]): WaitingWork => ({
  events: all.reduce((sum, { events }) => sum + events, 0),
  keys: all.reduce((sum, { keys }) => sum + keys, 0),
  woken: all.reduce((sum, { woken }) => sum + woken, 0),
});

const shown = (value: string): string => (value === "" ? "none" : value);

/** Counts keys and events, each if there are any, with their verb. */
function all(waiting: WaitingWork | undefined): string {
  const { keys = 0, events } = waiting ?? {};
  if (keys === 0) return count(events, "event on disk is", "events on disk are");
  if (events === 0) return count(keys, "waiting key is", "waiting keys are");
  return `${count(keys, "waiting key", "waiting keys")} and ${count(events, "event on disk", "events on disk")} are`;
}

/** Returns the counts of keys and events that there are, in brackets. */
function inBrackets(waiting: WaitingWork | undefined): string {
  const { keys = 0, events = 0 } = waiting ?? {};
  const counts = [
    ...(keys > 0 ? [count(keys, "key", "keys")] : []),
    ...(events > 0 ? [count(events, "event on disk", "events on disk")] : []),
  ];
  return counts.length === 0 ? "" : ` (${counts.join(", ")})`;
}

const count = (number: number | undefined, one: string, many: string): string =>
  number === undefined ? many : number === 1 ? `1 ${one}` : `${number} ${many}`;
