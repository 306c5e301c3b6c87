import { isNewer, isUpTo } from "../../base/resource-version.ts";
import {
  type Cursor,
  type JournalRow,
  type KnownIdentity,
  runSequence,
  type SpilledEvent,
  type StartedEvent,
} from "../../journal/batch.ts";
import { type Checkpoint, type StoredView, spillByTurns } from "../../journal/checkpoint.ts";
import { epochOf, uidOf, withTrigger } from "../delivery/delivery.ts";
import { type BegunAttempt, type BegunBefore, deletesAtSameVersion } from "./possible-redeliveries.ts";

/** An attempt that had begun, with its row in the journal. */
export interface RecordedStart extends StartedEvent {
  row: number;
}

/** The attempts that had begun when the last process ended, by event. Redeliveries are recognised by them. */
export class StartedBefore implements BegunBefore {
  private readonly events = new Map<string, RecordedStart>();
  /** The last `Added` or `Deleted` of each object that a handler may have received, under whichever event id. */
  private readonly passages = new Map<string, "Added" | "Deleted">();
  /** Dead letters that were put back: their states are known already. */
  private readonly replays = new Set<string>();

  /** Reads the attempts from the journal's rows, without those whose events are known to be done. */
  static async read(store: Checkpoint, rows: readonly JournalRow[]): Promise<StartedBefore> {
    const started = new StartedBefore();
    if (rows.length === 0) return started;
    // A removed function may be put back, together with its stored state.
    const stored = [...(await store.views()), ...(await store.retiredViews())];
    const views = new Map(stored.map((view) => [view.id, view]));
    /** Converts the event to its current id; a trigger may have been renamed. */
    const named = <T extends Pick<StartedEvent, "view" | "id">>(event: T): T => {
      const identity = views.get(event.view)?.identity;
      const isRun = runSequence(event.id) !== undefined;
      return identity === undefined || isRun ? event : { ...event, id: withTrigger(event.id, identity) };
    };
    const all = rows
      .flatMap(({ id: row, started: events }) => events.map((event) => ({ ...named(event), row })))
      .sort((a, b) => a.row - b.row);
    // The spill may hold a hundred thousand events; the journal holds only those that ran.
    const begun = new Set(all.map(keyOf));
    const objects = new Set(all.map(objectOf));
    const spilled = new Set<string>();
    /** The first event on disk of each of those objects. The mark may be past it. */
    const waiting = new Map<string, Pick<SpilledEvent, "id" | "deletedBy">>();
    for (const name of new Set([...views.values()].map((view) => view.function))) {
      for await (const header of spillByTurns(store, name)) {
        const key = keyOf(named(header));
        const object = objectOf({ view: header.view, key: `${header.namespace}/${header.name}` });
        const isKnown = header.kind === "key" || header.replayed;
        if (!isKnown && objects.has(object) && !waiting.has(object)) waiting.set(object, header);
        if (!begun.has(key)) continue;
        spilled.add(key);
        if (isKnown) started.replays.add(key);
      }
    }
    const cursorFor = (event: StartedEvent) => cursorOf(event, views.get(event.view));
    /** Deletions that the mark is past, by `keyOf`, unless one carries the resourceVersion of an object that still exists. */
    const passed = new Set<string>();
    for (const event of all) {
      const isOpen = spilled.has(keyOf(event)) || hasShown(event, waiting.get(objectOf(event)));
      const isPast = !isOpen && isPassed(event, cursorFor(event));
      if (isPast && event.type !== "Deleted") continue;
      if (isPast) passed.add(keyOf(event));
      started.add(event);
    }
    const unproven = [...started].filter((event) => !spilled.has(keyOf(event)));
    for (const [view, events] of Map.groupBy(unproven, (event) => event.view)) {
      const byKey = Map.groupBy(events, ({ key }) => key);
      await store.known(view, (key, known) => {
        for (const event of byKey.get(key) ?? []) {
          const { type, id, resourceVersion } = event;
          if (deletesAtSameVersion(known, type, { uid: uidOf(id), resourceVersion })) passed.delete(keyOf(event));
          if (isDone(event, known, cursorFor(event))) started.events.delete(keyOf(event));
        }
      });
    }
    for (const key of passed) started.events.delete(key);
    for (const { view, id, type } of [...started].sort((a, b) => a.row - b.row)) {
      if (type === "Added" || type === "Deleted") started.passages.set(`${view}/${uidOf(id)}`, type);
    }
    return started;
  }

  /** Returns how many attempts at this event began before; 0 if there was no attempt. */
  attemptsAt(view: number, id: string): number {
    return this.events.size === 0 ? 0 : (this.events.get(`${view}/${id}`)?.attempt ?? 0);
  }

  /** Returns the last attempt at the event; `undefined` if there was no attempt. */
  lastOf(view: number, id: string): BegunAttempt | undefined {
    return this.events.get(`${view}/${id}`);
  }

  /**
   * Whether a handler may have received this `Added` or `Deleted` of the object before, under another id. A list shows only what
   * exists now, and of a deletion only that it happened, so the event has another id. An `Added` repeats an earlier one also if
   * the handler never received the deletion in between. Can be asked once for each object: later events are news.
   */
  passageBegan(view: number, uid: string, type: "Added" | "Deleted"): boolean {
    const object = `${view}/${uid}`;
    const last = this.passages.get(object);
    this.passages.delete(object);
    return last === type || (last !== undefined && type === "Added");
  }

  /** Whether the event is a dead letter that was put back. */
  isReplay(event: StartedEvent): boolean {
    return this.replays.has(keyOf(event));
  }

  [Symbol.iterator](): Iterator<RecordedStart> {
    return this.events.values();
  }

  /**
   * Adds an attempt. For each event the last attempt counts, in its newest row. An interrupted attempt begins again under the
   * same number; its older row remains only for the other events in it.
   */
  private add(event: RecordedStart): void {
    const key = keyOf(event);
    const before = this.events.get(key);
    const isNext = !before || before.attempt < event.attempt;
    const last = isNext || (before.attempt === event.attempt && before.row < event.row) ? event : before;
    // An earlier attempt may have shown a newer state.
    const newest = [before, event].find((each) => each && isNewer(each.resourceVersion, last.resourceVersion));
    this.events.set(key, newest ? { ...last, resourceVersion: newest.resourceVersion } : last);
  }
}

const keyOf = ({ view, id }: Pick<StartedEvent, "view" | "id">): string => `${view}/${id}`;

const objectOf = ({ view, key }: Pick<StartedEvent, "view" | "key">): string => `${view} ${key}`;

/** Whether an attempt may have shown the state of another event, which waits on disk. */
function hasShown(
  { id, resourceVersion }: StartedEvent,
  waiting: Pick<SpilledEvent, "id" | "deletedBy"> | undefined,
): boolean {
  if (!waiting || !isUpTo(waiting.deletedBy, resourceVersion)) return false;
  return runSequence(id) !== undefined || epochOf(id) === epochOf(waiting.id);
}

/**
 * Returns the checkpoint of the event's source: of its namespace or of all, whichever has a mark. A source that was left has no
 * mark.
 */
function cursorOf({ key }: StartedEvent, view: StoredView | undefined): Cursor | undefined {
  const own = key.slice(0, key.indexOf("/"));
  return view?.cursors.find((it) => it.lowWaterMark !== undefined && (it.namespace === own || it.namespace === ""));
}

/** Whether the low-water mark is past the event, or past its whole epoch. Such an event is terminal unless it was spilled. */
function isPassed({ id, resourceVersion }: StartedEvent, cursor: Cursor | undefined): boolean {
  if (cursor?.lowWaterMark === undefined) return false;
  // A run's id has no epoch: the state that it showed belongs to the current one.
  const epoch = runSequence(id) === undefined ? epochOf(id) : cursor.epoch;
  if (epoch !== cursor.epoch) return epoch < cursor.epoch;
  return isUpTo(resourceVersion, cursor.lowWaterMark);
}

/**
 * Whether the known objects have the event, or something newer of its object. While an epoch has no checkpoint yet, the known state
 * may be of the epoch before, whose resourceVersions cannot be compared. A deletion that was found may carry the last state's
 * resourceVersion.
 */
function isDone(
  { resourceVersion, type, id }: StartedEvent,
  known: KnownIdentity,
  cursor: Cursor | undefined,
): boolean {
  if (type === "Deleted" && known.deleted && known.uid === uidOf(id)) return true;
  if (epochOf(id) > 0 && cursor?.lowWaterMark === undefined) {
    return type !== "Deleted" && known.resourceVersion === resourceVersion;
  }
  if (type === "Deleted") return isNewer(known.resourceVersion, resourceVersion);
  if (known.deleted && known.uid !== uidOf(id)) return false;
  return isUpTo(resourceVersion, known.resourceVersion);
}
