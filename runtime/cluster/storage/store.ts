import type { KubeObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import { Change } from "./change.ts";
import { Collection } from "./collection.ts";
import { Revision } from "./revision.ts";

/** A write as the journal records it. A record without an object is a deletion. */
export interface JournalRecord {
  revision: number;
  collection: string;
  key: string;
  object?: KubeObject;
}

/** Persists writes before they are acknowledged. */
export interface Journal {
  append(record: JournalRecord): void;
  close(): void;
}

/** Called after every write, once it is visible. */
type CommitListener = (collection: Collection, change: Change) => void;

/** The first revision of a new cluster, as of a new etcd. */
const firstRevision = 1;

/**
 * Every object of the cluster, under one revision that grows by one with each write. All writes are synchronous: what a request
 * has read cannot change before it writes in the same turn of the event loop.
 */
export class Store {
  private readonly collections = new Map<string, Collection>();
  private readonly clock: Clock;
  private readonly journal: Journal | undefined;
  private readonly listeners = new Set<CommitListener>();
  private readonly waiting = new Set<{ revision: number; wake: () => void }>();
  private last: number;

  constructor(clock: Clock, journal?: Journal, restored?: { revision: number; records: Iterable<JournalRecord> }) {
    this.clock = clock;
    this.journal = journal;
    this.last = restored?.revision ?? firstRevision;
    for (const { revision, collection, key, object } of restored?.records ?? [])
      this.collection(collection).load(key, object && new Revision(revision, object));
  }

  get revision(): number {
    return this.last;
  }

  collection(id: string): Collection {
    let collection = this.collections.get(id);
    if (!collection) {
      collection = new Collection(id, this.last);
      this.collections.set(id, collection);
    }
    return collection;
  }

  *all(): Generator<Collection> {
    yield* this.collections.values();
  }

  get(id: string, key: string): Revision | undefined {
    return this.collections.get(id)?.get(key);
  }

  /** Stores an object under the next revision, which becomes its resourceVersion. */
  put(id: string, key: string, object: KubeObject): Revision {
    const revision = this.last + 1;
    const stored = new Revision(revision, {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(revision) },
    });
    this.commit(this.collection(id), { revision, key, current: stored });
    return stored;
  }

  /** Removes an object. Returns its content with the deletion's revision. */
  delete(id: string, key: string): Revision | undefined {
    const collection = this.collection(id);
    if (!collection.get(key)) return undefined;
    return this.commit(collection, { revision: this.last + 1, key, current: undefined }).lost;
  }

  /** Ends the watches of a resource whose definition changed or was removed, and drops its history. */
  reset(id: string): void {
    const old = this.collections.get(id);
    if (!old) return;
    old.end();
    const fresh = new Collection(id, this.last);
    // Creates new revisions, because the cached bytes of the old ones may differ from what is served now.
    for (const [key, { revision, object }] of old.current("")) fresh.load(key, new Revision(revision, object));
    if (fresh.size > 0) this.collections.set(id, fresh);
    else this.collections.delete(id);
  }

  /** Drops all history of all resources. */
  compact(): void {
    for (const collection of this.collections.values()) collection.compact(this.last);
    this.compactedAll = this.last;
  }

  /** The revision of the last compaction of everything. */
  compactedAll = 0;

  listen(listener: CommitListener): void {
    this.listeners.add(listener);
  }

  /** Resolves to true when the revision is reached, or to false after `timeoutMs`. */
  reached(revision: number, timeoutMs: number): Promise<boolean> {
    if (this.last >= revision) return Promise.resolve(true);
    return new Promise((resolve) => {
      const entry = {
        revision,
        wake: () => {
          timer.cancel();
          resolve(true);
        },
      };
      const timer = this.clock.after(timeoutMs, () => {
        this.waiting.delete(entry);
        resolve(false);
      });
      this.waiting.add(entry);
    });
  }

  /** Ends all watches and closes the journal. */
  close(): void {
    for (const collection of this.collections.values()) collection.end();
    this.journal?.close();
  }

  private commit(
    collection: Collection,
    write: { revision: number; key: string; current: Revision | undefined },
  ): Change {
    const { revision, key, current } = write;
    const previous = collection.get(key);
    this.journal?.append({
      revision,
      collection: collection.id,
      key,
      ...(current ? { object: current.object } : {}),
    });
    this.last = revision;
    const change = new Change({ revision, key, previous, current, at: this.clock.monotonic() });
    collection.apply(change);
    for (const listener of this.listeners) listener(collection, change);
    for (const entry of this.waiting) {
      if (entry.revision > revision) continue;
      this.waiting.delete(entry);
      entry.wake();
    }
    return change;
  }
}
