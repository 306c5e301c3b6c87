import { isNewer, isUpTo } from "../../base/resource-version.ts";
import {
  type Cursor,
  type JournalRow,
  type KnownIdentity,
  runSequence,
  type SpilledEvent,
  type StartedEvent,
} from "../../journal/batch.ts";
import type { Checkpoint, StoredView } from "../../journal/checkpoint.ts";
import { spillByTurns } from "../../journal/spill-by-turns.ts";
import { epochOf, uidOf, withTrigger } from "../delivery/delivery.ts";
import type { BegunAttempt, BegunBefore } from "./possible-redeliveries.ts";

/** An attempt that had begun, with the journal's row that says so. */
export interface RecordedStart extends StartedEvent {
  row: number;
}

/** Attempts that had begun when the last process ended, by what they were at; how a redelivery is known. */
export class StartedBefore implements BegunBefore {
  private readonly events = new Map<string, RecordedStart>();
  /** Objects whose coming or going a handler may have been told last, under whichever id. */
  private readonly passages = new Map<string, "Added" | "Deleted">();
  /** Dead letters that were put back: what they tell is known already. */
  private readonly replays = new Set<string>();

  /** Takes from the journal what may not be done. */
  static async read(store: Checkpoint, rows: readonly JournalRow[]): Promise<StartedBefore> {
    const started = new StartedBefore();
    if (rows.length === 0) return started;
    // One of a function that was removed may come back, with what it holds.
    const stored = [...(await store.views()), ...(await store.retiredViews())];
    const views = new Map(stored.map((view) => [view.id, view]));
    /** As events are called now. */
    const named = <T extends Pick<StartedEvent, "view" | "id">>(event: T): T => {
      const identity = views.get(event.view)?.identity;
      const isRun = runSequence(event.id) !== undefined;
      return identity === undefined || isRun ? event : { ...event, id: withTrigger(event.id, identity) };
    };
    const all = rows
      .flatMap(({ id: row, started: events }) => events.map((event) => ({ ...named(event), row })))
      .sort((a, b) => a.row - b.row);
    // The spill may hold a hundred thousand events, the journal those that ran.
    const begun = new Set(all.map(keyOf));
    const objects = new Set(all.map(objectOf));
    const spilled = new Set<string>();
    /** Of those objects, the first event that waits on disk. The mark may be past it. */
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
    /** Deletions that the mark is past, unless one carries the resourceVersion of an object that still stands; by `keyOf`. */
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
          if (endsAsItWas(event, known)) passed.delete(keyOf(event));
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

  /** How many attempts at this event began before; 0 for none. */
  attemptsAt(view: number, id: string): number {
    return this.events.size === 0 ? 0 : (this.events.get(`${view}/${id}`)?.attempt ?? 0);
  }

  /** The last of them; undefined where none began. */
  lastOf(view: number, id: string): BegunAttempt | undefined {
    return this.events.get(`${view}/${id}`);
  }

  /**
   * Whether a handler may have been told this of the object before. A list tells only of what is there now. Of a
   * deletion it knows only that it was, so that the event has another id. An Added repeats another also where the
   * deletion in between never got to the handler. Asked once: what comes after is news.
   */
  passageBegan(view: number, uid: string, type: "Added" | "Deleted"): boolean {
    const object = `${view}/${uid}`;
    const last = this.passages.get(object);
    this.passages.delete(object);
    return last === type || (last !== undefined && type === "Added");
  }

  /** Whether it is a dead letter that was put back. */
  isReplay(event: StartedEvent): boolean {
    return this.replays.has(keyOf(event));
  }

  [Symbol.iterator](): Iterator<RecordedStart> {
    return this.events.values();
  }

  /**
   * The last attempt counts, in its newest row. One that was interrupted began again under the same number. The row of before
   * is there for others alone.
   */
  private add(event: RecordedStart): void {
    const key = keyOf(event);
    const before = this.events.get(key);
    const isNext = !before || before.attempt < event.attempt;
    const last = isNext || (before.attempt === event.attempt && before.row < event.row) ? event : before;
    // One before it may have shown a newer state.
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

/** The position that the event belongs to: of its namespace or of all, whichever the scope has now. The one that it left has no mark. */
function cursorOf({ key }: StartedEvent, view: StoredView | undefined): Cursor | undefined {
  const own = key.slice(0, key.indexOf("/"));
  return view?.cursors.find((it) => it.lowWaterMark !== undefined && (it.namespace === own || it.namespace === ""));
}

/** Whether the object still stands as its deletion says, which carries the last state's own resourceVersion. */
const endsAsItWas = ({ type, resourceVersion, id }: StartedEvent, known: KnownIdentity): boolean =>
  type === "Deleted" && !known.deleted && known.uid === uidOf(id) && known.resourceVersion === resourceVersion;

/** The low-water mark is past the event, or past its whole epoch: it is terminal, unless it was spilled. */
function isPassed({ id, resourceVersion }: StartedEvent, cursor: Cursor | undefined): boolean {
  if (cursor?.lowWaterMark === undefined) return false;
  // A run's id has none: what it has shown is of the last.
  const epoch = runSequence(id) === undefined ? epochOf(id) : cursor.epoch;
  if (epoch !== cursor.epoch) return epoch < cursor.epoch;
  return isUpTo(resourceVersion, cursor.lowWaterMark);
}

/**
 * The view has it, or something newer of the object. While an epoch has no position yet, what the view has may be of the
 * one before, whose resourceVersions say nothing. A deletion that was found may bear the last state's own.
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
