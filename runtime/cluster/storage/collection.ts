import type { Change } from "./change.ts";
import type { Revision } from "./revision.ts";

/**
 * Maximum number of changes kept per resource. kube-apiserver's ring grows to 102,400 (watch_cache_history.go); this one holds
 * whole objects in a developer's process, so it is a third of that.
 */
const historyLimit = 32_768;

/** Older changes are dropped: etcd is compacted every 5 minutes (storagebackend/config.go). Milliseconds. */
const historyAgeMs = 300_000;

/** Number of expired changes that may remain at the head of the array before it is cut. */
const slack = 1024;

/** All objects of one resource, and their recent changes. */
export class Collection {
  /** `configmaps`, `deployments.apps`. */
  readonly id: string;
  private readonly entries = new Map<string, Revision>();
  private sorted: string[] | undefined;
  private log: Change[] = [];
  private head = 0;
  private floor: number;
  private readonly listeners = new Set<Listener>();
  /** True once the collection is no longer served, which ends its watches. */
  ended = false;

  constructor(id: string, revision: number) {
    this.id = id;
    this.floor = revision;
  }

  /** Changes up to this revision are dropped; a read at an older revision is "expired". */
  get compacted(): number {
    return this.floor;
  }

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Revision | undefined {
    return this.entries.get(key);
  }

  /** Applies a change and wakes the watchers. */
  apply(change: Change): void {
    this.load(change.key, change.current);
    this.log.push(change);
    while (this.log.length - this.head > historyLimit) this.forget();
    for (let oldest = this.log[this.head]; oldest && change.at - oldest.at > historyAgeMs; oldest = this.log[this.head])
      this.forget();
    for (const listener of this.listeners) listener.changed();
  }

  /** Stores an object without a history entry. */
  load(key: string, current: Revision | undefined): void {
    if (current) {
      if (!this.entries.has(key)) this.insert(key);
      this.entries.set(key, current);
    } else if (this.entries.delete(key)) this.remove(key);
  }

  /** Drops all history: every revision before `revision` is expired. */
  compact(revision: number): void {
    for (const listener of this.listeners) listener.compacting();
    this.log = [];
    this.head = 0;
    this.floor = revision;
  }

  /** Ends every watch, because the collection is about to be replaced or removed. */
  end(): void {
    this.ended = true;
    for (const listener of this.listeners) listener.changed();
  }

  /** Yields the keys that begin with `prefix`, in storage order, from `start` on. */
  *keys(prefix: string, start = ""): Generator<string> {
    const sorted = this.order();
    const from = start > prefix ? start : prefix;
    for (let index = lowerBound(sorted, from); index < sorted.length; index++) {
      const key = sorted[index];
      if (key === undefined || !key.startsWith(prefix)) return;
      yield key;
    }
  }

  /** Yields the current objects under `prefix`, from `start` on. */
  *current(prefix: string, start = ""): Generator<[string, Revision]> {
    for (const key of this.keys(prefix, start)) {
      const entry = this.entries.get(key);
      if (entry) yield [key, entry];
    }
  }

  /** Yields the objects under `prefix` from `start` on, in their state at `revision`, which must not be expired. */
  *past(revision: number, prefix: string, start = ""): Generator<[string, Revision]> {
    const undone = new Map<string, Revision | undefined>();
    for (let index = this.log.length - 1; index >= this.head; index--) {
      const change = this.log[index];
      if (!change || change.revision <= revision) break;
      if (change.key.startsWith(prefix)) undone.set(change.key, change.previous);
    }
    if (undone.size === 0) return yield* this.current(prefix, start);
    const keys = new Set([...this.keys(prefix, start), ...[...undone.keys()].filter((key) => key >= start)]);
    for (const key of [...keys].sort()) {
      const entry = undone.has(key) ? undone.get(key) : this.entries.get(key);
      if (entry) yield [key, entry];
    }
  }

  /** The first change after `revision`; call again with that change's revision for the next. */
  after(revision: number): ChangeCursor {
    return new ChangeCursor(this.log, this.firstAfter(revision));
  }

  /** The revision of the newest change kept; 0 if there is no change. */
  get lastRevision(): number {
    return this.log.at(-1)?.revision ?? 0;
  }

  /** The number of changes after `revision`. */
  countAfter(revision: number): number {
    return this.log.length - this.firstAfter(revision);
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private firstAfter(revision: number): number {
    let low = this.head;
    let high = this.log.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.log[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private forget(): void {
    this.floor = this.log[this.head]?.revision ?? this.floor;
    this.head++;
    if (this.head >= slack && this.head * 2 > this.log.length) {
      this.log = this.log.slice(this.head);
      this.head = 0;
    }
  }

  private order(): string[] {
    this.sorted ??= [...this.entries.keys()].sort();
    return this.sorted;
  }

  private insert(key: string): void {
    if (!this.sorted) return;
    const last = this.sorted.at(-1);
    if (last === undefined || key > last) this.sorted.push(key);
    else this.sorted.splice(lowerBound(this.sorted, key), 0, key);
  }

  private remove(key: string): void {
    if (!this.sorted) return;
    const index = lowerBound(this.sorted, key);
    if (this.sorted[index] === key) this.sorted.splice(index, 1);
  }
}

/** Callbacks of a collection's change. The listener reads the collection itself. */
interface Listener {
  changed(): void;
  /** Called before history is dropped: the last moment to read it. */
  compacting(): void;
}

/** A reader's position in a log. It stays valid while the log is only appended to. */
class ChangeCursor {
  private readonly log: readonly Change[];
  private index: number;

  constructor(log: readonly Change[], index: number) {
    this.log = log;
    this.index = index;
  }

  next(): Change | undefined {
    const change = this.log[this.index];
    if (change) this.index++;
    return change;
  }
}

function lowerBound(sorted: readonly string[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
