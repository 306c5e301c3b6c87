import type { Cursor, JournalEntries, JournalRow, KnownIdentity, StateWrite, ViewRow } from "./batch.ts";

/** A view with its cursors and known objects. */
interface HeldView extends ViewRow {
  /** By namespace. */
  readonly cursors: Map<string, Cursor>;
  /** By key. Empty in a journal that reads known objects on demand. */
  readonly known: Map<string, HeldObject>;
}

export interface HeldObject extends KnownIdentity {
  readonly body: Buffer | undefined;
  readonly bodyIsOlder?: boolean;
}

/** State that is always in memory: replayed when a journal is opened, and updated by each append. */
export class JournalState {
  cluster: string | undefined;
  /** By function: since when it is paused (epoch milliseconds). */
  readonly paused = new Map<string, number>();
  readonly views = new Map<number, HeldView>();
  /** Attempts that have begun, by row. */
  readonly begun = new Map<number, JournalRow>();
  /** By function: the entries that it keeps (`ctx.state`), as JSON text by key. */
  readonly own = new Map<string, Map<string, string>>();
  /** The next free number. No view or dead letter ever had this number or a higher one. */
  nextView = 1;
  nextLetter = 1;

  /** Applies entries that are recorded, synchronously. */
  apply(entries: JournalEntries): void {
    const { cluster, paused, views, goneViews, cursors, droppedCursors, journal, settledJournal } = entries;
    if (cluster !== undefined) this.cluster = cluster;
    for (const [name, since] of paused) {
      if (since === undefined) this.paused.delete(name);
      else this.paused.set(name, since);
    }
    for (const view of views) this.putView(view);
    for (const id of goneViews) this.forgetView(id);
    // A namespace may be removed and added again between two commits.
    for (const { view, namespace } of droppedCursors) this.views.get(view)?.cursors.delete(namespace);
    for (const cursor of cursors) this.views.get(cursor.view)?.cursors.set(cursor.namespace, cursor);
    for (const row of journal) this.begun.set(row.id, row);
    for (const id of settledJournal) this.begun.delete(id);
    for (const write of entries.state) this.putOwn(write);
  }

  putOwn({ function: name, key, value }: StateWrite): void {
    const entries = this.own.get(name) ?? new Map<string, string>();
    if (value !== undefined) this.own.set(name, entries.set(key, value));
    else if (entries.delete(key) && entries.size === 0) this.own.delete(name);
  }

  /** Returns the writes that delete the entries of functions that have no view among `views`. */
  withoutViews(views: Iterable<Pick<ViewRow, "function">>): StateWrite[] {
    const functions = new Set([...views].map(({ function: name }) => name));
    return [...this.own].flatMap(([name, entries]) =>
      functions.has(name) ? [] : [...entries.keys()].map((key) => ({ function: name, key, value: undefined })),
    );
  }

  putView(row: ViewRow): void {
    const { cursors = new Map(), known = new Map() } = this.views.get(row.id) ?? {};
    this.views.set(row.id, { ...row, cursors, known });
    this.nextView = Math.max(this.nextView, row.id + 1);
  }

  /** Deletes a view with everything it holds, including its begun attempts. */
  forgetView(id: number): void {
    this.views.delete(id);
    for (const [row, { started }] of this.begun) {
      const others = started.filter(({ view }) => view !== id);
      if (others.length === 0) this.begun.delete(row);
      else if (others.length < started.length) this.begun.set(row, { id: row, started: others });
    }
  }
}
