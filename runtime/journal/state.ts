import type { Cursor, JournalEntries, JournalRow, KnownIdentity, ViewRow } from "./batch.ts";

/** A view with what hangs on it. */
interface HeldView extends ViewRow {
  /** By namespace. */
  readonly cursors: Map<string, Cursor>;
  /** By key; of a journal that reads them when they are asked for, none. */
  readonly known: Map<string, HeldObject>;
}

export interface HeldObject extends KnownIdentity {
  readonly body: Buffer | undefined;
  readonly bodyIsOlder?: boolean;
}

/** State that is always in memory: replayed when a journal is opened, and changed by each append. */
export class JournalState {
  cluster: string | undefined;
  /** By function, since when (epoch milliseconds). */
  readonly paused = new Map<string, number>();
  readonly views = new Map<number, HeldView>();
  /** Attempts that had begun, by row. */
  readonly begun = new Map<number, JournalRow>();
  /** No view or dead letter had this number before, nor one behind it. */
  nextView = 1;
  nextLetter = 1;

  /** Takes in what is on record now, in one turn. */
  apply({ cluster, paused, views, goneViews, cursors, droppedCursors, journal, settledJournal }: JournalEntries): void {
    if (cluster !== undefined) this.cluster = cluster;
    for (const [name, since] of paused) {
      if (since === undefined) this.paused.delete(name);
      else this.paused.set(name, since);
    }
    for (const view of views) this.putView(view);
    for (const id of goneViews) this.forgetView(id);
    // A namespace may leave and come back between two commits.
    for (const { view, namespace } of droppedCursors) this.views.get(view)?.cursors.delete(namespace);
    for (const cursor of cursors) this.views.get(cursor.view)?.cursors.set(cursor.namespace, cursor);
    for (const row of journal) this.begun.set(row.id, row);
    for (const id of settledJournal) this.begun.delete(id);
  }

  putView(row: ViewRow): void {
    const { cursors = new Map(), known = new Map() } = this.views.get(row.id) ?? {};
    this.views.set(row.id, { ...row, cursors, known });
    this.nextView = Math.max(this.nextView, row.id + 1);
  }

  /** Deletes a view with all it holds, and what of it had begun. */
  forgetView(id: number): void {
    this.views.delete(id);
    for (const [row, { started }] of this.begun) {
      const others = started.filter(({ view }) => view !== id);
      if (others.length === 0) this.begun.delete(row);
      else if (others.length < started.length) this.begun.set(row, { id: row, started: others });
    }
  }
}
