import type { JournalRow, KnownIdentity, StartedEvent } from "../checkpoint/batch.ts";
import type { CheckpointStore, StoredView } from "../checkpoint/store.ts";
import { compareResourceVersions, newerResourceVersion } from "../watch/resource-version.ts";
import { epochOf, uidOf } from "./event.ts";

/** Attempts that had begun when the last process ended, by what they were at; how a redelivery is known. */
export class StartedBefore {
  private readonly events = new Map<string, StartedEvent>();
  /** By object: the newest resourceVersion that a handler may have seen. */
  private readonly newest = new Map<string, string>();
  /** Objects whose deletion a handler may have been told, under whichever id. */
  private readonly deletions = new Set<string>();

  /** Takes from the journal what may not be done. */
  static async read(store: CheckpointStore, rows: readonly JournalRow[]): Promise<StartedBefore> {
    const started = new StartedBefore();
    const all = rows.flatMap((row) => row.started);
    if (all.length === 0) return started;
    const views = new Map((await store.views()).map((view) => [view.id, view]));
    const spilled = new Set<string>();
    for (const name of new Set([...views.values()].map((view) => view.function))) {
      for (const { view, id } of await store.spillHeaders(name)) spilled.add(`${view}/${id}`);
    }
    for (const event of all) {
      if (spilled.has(keyOf(event)) || !isPassed(event, views.get(event.view))) started.add(event);
    }
    for (const view of new Set([...started].map((event) => event.view))) await started.dropKnown(store, view);
    for (const { view, key, id, resourceVersion, type } of started) {
      if (type === "Deleted") {
        started.deletions.add(`${view}/${uidOf(id)}`);
        continue;
      }
      const object = `${view}/${key}`;
      started.newest.set(object, newerResourceVersion(started.newest.get(object), resourceVersion));
    }
    return started;
  }

  /** How many attempts at this event began before; 0 for none. */
  attemptsAt(view: number, id: string): number {
    return this.events.size === 0 ? 0 : (this.events.get(`${view}/${id}`)?.attempt ?? 0);
  }

  /** Whether a handler may have seen this state of the object or a newer one, in an event that a list made. */
  isOvertaken(view: number, key: string, resourceVersion: string): boolean {
    const newest = this.newest.size === 0 ? undefined : this.newest.get(`${view}/${key}`);
    return newest !== undefined && (compareResourceVersions(resourceVersion, newest) ?? 1) <= 0;
  }

  /** Whether a handler may know of this object's deletion: under selectors a found one and a watched one have different ids. */
  deletionBegan(view: number, uid: string): boolean {
    return this.deletions.has(`${view}/${uid}`);
  }

  [Symbol.iterator](): Iterator<StartedEvent> {
    return this.events.values();
  }

  private async dropKnown(store: CheckpointStore, view: number): Promise<void> {
    const byKey = Map.groupBy(
      [...this].filter((event) => event.view === view),
      ({ key }) => key,
    );
    await store.known(view, (key, known) => {
      for (const event of byKey.get(key) ?? []) if (isDone(event, known)) this.events.delete(keyOf(event));
    });
  }

  private add(event: StartedEvent): void {
    const key = keyOf(event);
    if ((this.events.get(key)?.attempt ?? 0) < event.attempt) this.events.set(key, event);
  }
}

const keyOf = ({ view, id }: StartedEvent): string => `${view}/${id}`;

/** The low-water mark is past the event, in the epoch that the mark belongs to: it is terminal, unless it was spilled. */
function isPassed({ key, id, resourceVersion }: StartedEvent, view: StoredView | undefined): boolean {
  const namespace = key.slice(0, key.indexOf("/"));
  const cursor = view?.cursors.find((it) => it.namespace === "" || it.namespace === namespace);
  if (cursor?.lowWaterMark === undefined || epochOf(id) > cursor.epoch) return false;
  return (compareResourceVersions(resourceVersion, cursor.lowWaterMark) ?? 1) <= 0;
}

/** The view has it, or something newer of the object. */
function isDone({ resourceVersion }: StartedEvent, known: KnownIdentity): boolean {
  return (compareResourceVersions(resourceVersion, known.resourceVersion) ?? 1) <= 0;
}
