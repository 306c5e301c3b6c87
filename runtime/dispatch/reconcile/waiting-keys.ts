import { type Cause, runSequence, type SpilledEvent, type SpillHeader } from "../../checkpoint/batch.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { ResourceVersion } from "../../resource-version.ts";
import type { Commits } from "../commit/commits.ts";
import { eventId } from "../delivery/event-id.ts";
import type { RecordedStart } from "../doubt/started-before.ts";
import { nameOf } from "../position/by-namespace.ts";
import type { View } from "../position/view.ts";
import { unknownVersion } from "./key-lane.ts";

export interface WaitingKeysParts {
  readonly commits: Commits;
  readonly startedBefore: Iterable<RecordedStart>;
  /** By number. */
  readonly views: ReadonlyMap<number, View>;
  /** The view of a trigger, by the name that it had when the key was woken. */
  readonly viewNamed: (trigger: string) => View | undefined;
  readonly nextSequence: () => number;
}

/** An object that a key waited for. */
interface Awaited {
  readonly view: View;
  readonly key: string;
  readonly cause: Cause;
}

/**
 * Replaces keys that waited for a run, and that are not reconciled any more, by events of the objects that woke them. Both
 * are in one commit. The events are replays: their states are known and filtered already. Events that the trigger does not
 * ask for are left out.
 * @returns how many events were written
 */
export async function tellWaitingKeys(rows: readonly SpillHeader[], parts: WaitingKeysParts): Promise<number> {
  const { commits, views } = parts;
  const sequences = new Map(rows.map(({ sequence, view }) => [sequence, view]));
  /** Rows of which a run had begun when the last process ended. */
  const begun = new Set<number>();
  for (const event of parts.startedBefore) {
    const sequence = runSequence(event.id);
    if (sequence === undefined || sequences.get(sequence) !== event.view) continue;
    begun.add(sequence);
    commits.settle(event.row, event);
  }
  let told = 0;
  for (const row of rows) {
    const home = views.get(row.view);
    if (!home) continue;
    const events: SpilledEvent[] = [];
    for (const awaited of awaitedBy(row, home, parts)) {
      const event = await eventOf(awaited, row, begun.has(row.sequence), parts.nextSequence);
      if (event) events.push(event);
    }
    for (const event of events) commits.putSpilled(event);
    commits.dropSpilled(home.functionName, row.sequence);
    told += events.length;
  }
  return told;
}

/** The objects that a key waited for: those whose changes woke it, and its own where something else did. Each once. */
function awaitedBy({ namespace, name, pending }: SpillHeader, home: View, parts: WaitingKeysParts): Iterable<Awaited> {
  const found = new Map<string, Awaited>();
  for (const cause of pending?.causes ?? []) {
    const view = cause.trigger === undefined ? undefined : parts.viewNamed(cause.trigger);
    const isChange = view !== undefined && cause.name !== undefined;
    const key = isChange ? `${cause.namespace ?? ""}/${cause.name}` : `${namespace}/${name}`;
    const awaited = { view: isChange ? view : home, key, cause };
    found.set(`${awaited.view.id}/${key}`, awaited);
  }
  return found.values();
}

/** Undefined where the trigger does not ask for it. */
async function eventOf(
  { view, key, cause }: Awaited,
  row: SpillHeader,
  hasBegun: boolean,
  nextSequence: () => number,
): Promise<SpilledEvent | undefined> {
  const { trigger, form, identity } = view;
  const known = view.stands(key);
  const type = known ? stateType(cause, trigger.events) : trigger.events.find((each) => each === "Deleted");
  if (!type) return undefined;
  const isWhole = form.keepsWholeObjects || trigger.object === "Metadata";
  // Left out, it is asked for before the attempt.
  const body = known && isWhole ? await view.body(key) : undefined;
  if (body && !view.matches(key, body)) return undefined;
  const { uid, resourceVersion }: { uid: string; resourceVersion: ResourceVersion } = known ?? {
    uid: cause.uid ?? view.gone(key)?.uid ?? "",
    resourceVersion: view.gone(key)?.resourceVersion ?? unknownVersion,
  };
  const epoch = view.epochOf(key);
  const of = { trigger: identity, type, uid, resourceVersion, lastKnown: !known, selective: false, epoch };
  const { begun = 0 } = row.pending ?? {};
  const isChange = cause.name !== undefined;
  return {
    view: view.id,
    function: view.functionName,
    trigger: trigger.name,
    ...nameOf(key),
    uid,
    resourceVersion,
    type,
    // Of an object of which nothing is known any more, the row's number says which it was.
    id: uid === "" ? `${identity}:${row.id}/${type}` : eventId(of),
    flags: { synthetic: true, reason: "edited", ...(known ? {} : { finalStateUnknown: true }) },
    deletedBy: resourceVersion,
    body: body ?? Buffer.alloc(0),
    oldBody: undefined,
    form: form.ofEvents,
    receivedAt: row.receivedAt,
    sequence: nextSequence(),
    replayed: true,
    // A run may have seen it; and where nothing changed, one has.
    redelivered: row.redelivered || hasBegun || begun > 0 || !isChange,
    notBefore: row.notBefore,
  };
}

/** As which event a state is told; undefined where the trigger asks for none. */
function stateType({ type }: Cause, events: readonly string[]): ChangeType | undefined {
  const first = type === "Added" ? "Added" : "Modified";
  return [first, first === "Added" ? "Modified" : "Added"].find((each): each is ChangeType => events.includes(each));
}
