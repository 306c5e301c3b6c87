import { type Cause, runSequence, type SpilledEvent, type SpillHeader } from "../../checkpoint/batch.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { Commits } from "../commit/commits.ts";
import { eventId } from "../delivery/event-id.ts";
import type { RecordedStart } from "../doubt/started-before.ts";
import { nameOf } from "../position/by-namespace.ts";
import type { View } from "../position/view.ts";
import { unknownVersion } from "./key-lane.ts";

export interface WaitingKeysParts {
  readonly commits: Commits;
  readonly startedBefore: Iterable<RecordedStart>;
  /** Of the keys that are reconciled: their runs are not settled here. */
  readonly primary: View | undefined;
  /** By number. */
  readonly views: ReadonlyMap<number, View>;
  /** The view of a trigger, by the name that it had when the key was woken. */
  readonly viewNamed: (trigger: string) => View | undefined;
  readonly nextSequence: () => number;
}

/** An object that keys waited for. */
interface Awaited {
  readonly view: View;
  readonly key: string;
  readonly cause: Cause;
  /** The first row of those that waited for it. */
  readonly row: SpillHeader;
  /** A run may have seen it. */
  redelivered: boolean;
}

/** Bytes of bodies that one commit takes. The others are asked for before their attempts. */
const mostBytes = 16 * 1024 * 1024;

/**
 * Replaces keys that waited for a run, and that are not reconciled any more, by events of the objects that woke them. All of
 * it is one commit, and an object is told once, whatever number of keys it woke. The events are replays: their states are
 * known and filtered already. Events that the trigger does not ask for are left out.
 * @returns how many events were written
 */
export async function tellWaitingKeys(rows: readonly SpillHeader[], parts: WaitingKeysParts): Promise<number> {
  const { commits, views } = parts;
  const replaced = rows.filter(({ view }) => views.has(view));
  const begun = settleRuns(parts);
  const awaited = new Map<string, Awaited>();
  for (const row of replaced) noteAwaited(row, begun.has(row.sequence), awaited, parts);
  const events: SpilledEvent[] = [];
  let room = mostBytes;
  for (const each of awaited.values()) {
    const event = await eventOf(each, room > 0, parts.nextSequence);
    if (!event) continue;
    room -= event.body.length;
    events.push(event);
  }
  for (const event of events) commits.putSpilled(event);
  for (const { view, sequence } of replaced) commits.dropSpilled(views.get(view)?.functionName ?? "", sequence);
  return events.length;
}

/** Takes the runs that had begun out of the journal, those whose rows are gone as well. Returns their rows' numbers. */
function settleRuns({ commits, startedBefore, primary, views }: WaitingKeysParts): ReadonlySet<number> {
  const begun = new Set<number>();
  for (const event of startedBefore) {
    const sequence = runSequence(event.id);
    if (sequence === undefined || event.view === primary?.id || !views.has(event.view)) continue;
    begun.add(sequence);
    commits.settle(event.row, event);
  }
  return begun;
}

/** Notes the objects that a key waited for: those whose changes woke it, and its own where something else did. */
function noteAwaited(
  row: SpillHeader,
  hasBegun: boolean,
  awaited: Map<string, Awaited>,
  parts: WaitingKeysParts,
): void {
  const { namespace, name, pending, redelivered } = row;
  const home = parts.views.get(row.view);
  for (const cause of home ? (pending?.causes ?? []) : []) {
    const changed =
      cause.name !== undefined && cause.trigger !== undefined ? parts.viewNamed(cause.trigger) : undefined;
    const view = changed ?? home;
    const key = changed ? `${cause.namespace ?? ""}/${cause.name}` : `${namespace}/${name}`;
    if (!view) continue;
    const id = `${view.id}/${key}`;
    // Where nothing changed, a run has seen it.
    const isSeen = redelivered || hasBegun || (pending?.begun ?? 0) > 0 || cause.name === undefined;
    const before = awaited.get(id);
    if (before) before.redelivered ||= isSeen;
    else awaited.set(id, { view, key, cause, row, redelivered: isSeen });
  }
}

/** @returns undefined where the trigger does not ask for it */
async function eventOf(
  { view, key, cause, row, redelivered }: Awaited,
  withBody: boolean,
  nextSequence: () => number,
): Promise<SpilledEvent | undefined> {
  const { trigger, form, identity } = view;
  const known = view.stands(key);
  const type = known ? stateType(cause, trigger.events) : trigger.events.find((each) => each === "Deleted");
  const uid = known?.uid ?? cause.uid ?? view.gone(key)?.uid;
  // Of a key without an object nothing can be told.
  if (!type || uid === undefined) return undefined;
  const isWhole = form.keepsWholeObjects || trigger.object === "Metadata";
  // Left out, it is asked for before the attempt.
  const body = known && isWhole && withBody ? await view.body(key) : undefined;
  if (body && !view.matches(key, body)) return undefined;
  const { resourceVersion } = known ?? view.gone(key) ?? { resourceVersion: unknownVersion };
  const epoch = view.epochOf(key);
  const of = { trigger: identity, type, uid, resourceVersion, lastKnown: !known, selective: false, epoch };
  return {
    view: view.id,
    function: view.functionName,
    trigger: trigger.name,
    ...nameOf(key),
    uid,
    resourceVersion,
    type,
    id: eventId(of),
    flags: { synthetic: true, reason: "edited", ...(known ? {} : { finalStateUnknown: true }) },
    deletedBy: resourceVersion,
    body: body ?? Buffer.alloc(0),
    oldBody: undefined,
    form: form.ofEvents,
    receivedAt: row.receivedAt,
    sequence: nextSequence(),
    replayed: true,
    redelivered,
    notBefore: row.notBefore,
  };
}

/** As which event a state is told; undefined where the trigger asks for none. */
function stateType({ type }: Cause, events: readonly string[]): ChangeType | undefined {
  const first = type === "Added" ? "Added" : "Modified";
  return [first, first === "Added" ? "Modified" : "Added"].find((each): each is ChangeType => events.includes(each));
}
