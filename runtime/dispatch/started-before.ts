import type { JournalRow, KnownIdentity, StartedEvent } from "../checkpoint/batch.ts";
import type { CheckpointStore } from "../checkpoint/store.ts";
import { compareResourceVersions } from "../watch/resource-version.ts";

/** Attempts that had begun when the last process ended, by what they were at; how a redelivery is known. */
export class StartedBefore {
  private readonly events = new Map<string, StartedEvent>();

  /** Takes from the journal what is not done: attempts at events that the views do not show as terminal. */
  static async read(store: CheckpointStore, rows: readonly JournalRow[]): Promise<StartedBefore> {
    const started = new StartedBefore();
    const byObject = new Map<number, Map<string, StartedEvent[]>>();
    for (const event of rows.flatMap((row) => row.started)) {
      started.add(event);
      const ofView = byObject.get(event.view) ?? new Map<string, StartedEvent[]>();
      ofView.set(event.key, [...(ofView.get(event.key) ?? []), event]);
      byObject.set(event.view, ofView);
    }
    for (const [view, objects] of byObject) {
      await store.known(view, (key, known) => {
        for (const event of objects.get(key) ?? []) if (isDone(event, known)) started.events.delete(keyOf(event));
      });
    }
    return started;
  }

  /** How many attempts at this event began before; 0 for none. */
  attemptsAt(event: Omit<StartedEvent, "attempt">): number {
    return this.events.size === 0 ? 0 : (this.events.get(keyOf(event))?.attempt ?? 0);
  }

  [Symbol.iterator](): Iterator<StartedEvent> {
    return this.events.values();
  }

  private add(event: StartedEvent): void {
    const key = keyOf(event);
    if ((this.events.get(key)?.attempt ?? 0) < event.attempt) this.events.set(key, event);
  }
}

const keyOf = ({ view, key, uid, resourceVersion, type }: Omit<StartedEvent, "attempt">): string =>
  `${view}/${key}/${uid}/${resourceVersion}/${type}`;

/** A deletion that was found carries the resourceVersion of the last state known, so only a tombstone tells that it is done. */
function isDone({ type, resourceVersion }: StartedEvent, known: KnownIdentity): boolean {
  const order = compareResourceVersions(resourceVersion, known.resourceVersion);
  if (order === undefined || order > 0) return false;
  return type !== "Deleted" || order < 0 || known.deleted;
}
