import type { DatabaseSync, StatementSync } from "node:sqlite";
import { WatchfireError } from "../../base/errors.ts";
import type { JournalEntries } from "../batch.ts";
import { headerOf } from "../rows.ts";
import { type SqliteKnown, WriteStep } from "./known.ts";
import { noteNoLog } from "./schema.ts";

/**
 * A write in one transaction. It ends at the first `next` unless it has many bytes of bodies: then each `next` writes some of
 * them, and leaves the transaction open. No other write may begin meanwhile. If it throws, it has rolled back.
 */
export type WriteSteps = Iterator<void, void>;

/** Writes entries, in one transaction each, with a prepared statement for each kind of row. */
export class SqliteWriter {
  private readonly db: DatabaseSync;
  private readonly file: string;
  private readonly fence: number;
  private readonly known: SqliteKnown;
  private readonly statements: ReturnType<typeof prepare>;

  constructor(db: DatabaseSync, file: string, fence: number, known: SqliteKnown) {
    this.db = db;
    this.known = known;
    this.file = file;
    this.fence = fence;
    this.statements = prepare(db);
  }

  write(entries: JournalEntries): WriteSteps {
    return this.transaction(() => this.rows(entries));
  }

  /** Folds some of the log of known objects into the table. */
  fold(): void {
    this.transaction(() => {
      this.known.fold();
      return [];
    }).next();
  }

  /** Folds the whole log. After that, a runtime that does not know the log can use the file. */
  foldAll(): void {
    this.transaction(() => {
      this.known.fold(true);
      noteNoLog(this.db);
      return [];
    }).next();
  }

  private assertOurs(): void {
    const held = this.statements.fence.get()?.fence;
    if (held === this.fence) return;
    throw new WatchfireError("WF_CHECKPOINT_FENCED", {
      what: `its fence is no longer ${this.fence}`,
      place: { file: this.file },
      actual: held,
    });
  }

  /**
   * Runs `work` in a transaction that holds the write lock from its start.
   * @param work yields after each full step
   */
  private *transaction(work: () => Iterable<void>): Generator<void, void> {
    this.statements.begin.run();
    try {
      this.assertOurs();
      yield* work();
      this.statements.commit.run();
    } catch (error) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      this.known.rolledBack();
      throw error;
    }
  }

  private *rows(entries: JournalEntries): Generator<void, void> {
    const run = this.statements;
    const step = new WriteStep();
    if (entries.cluster !== undefined) run.putCluster.run(entries.cluster);
    for (const [name, since] of entries.paused) {
      if (since === undefined) run.dropPaused.run(name);
      else run.putPaused.run(name, since);
    }
    // Released first, because two views may swap their names, which are unique.
    for (const { id } of entries.views) run.releaseView.run(id);
    for (const { id, function: name, trigger, resource, identity, manifest, retiredAt } of entries.views) {
      run.putView.run(id, name, trigger, resource, retiredAt ?? null, identity, manifest ?? null);
    }
    yield* this.known.write(entries.known, entries.bodies, step);
    for (const id of entries.goneViews) run.dropView.run(id);
    if (entries.goneViews.length > 0) {
      this.known.forget(entries.goneViews);
      this.db.exec(dropBegun);
    }
    for (const { view, namespace } of entries.droppedCursors) run.dropCursor.run(view, namespace);
    for (const { view, namespace, selection, lowWaterMark, epoch, initial } of entries.cursors) {
      run.putCursor.run(view, namespace, selection, lowWaterMark ?? null, epoch, initial ? 1 : 0);
    }
    for (const { id, started } of entries.journal) {
      const rows = started.map((it) => [it.view, it.key, it.id, it.resourceVersion, it.type, it.attempt]);
      run.putJournal.run(id, JSON.stringify(rows));
    }
    for (const id of entries.settledJournal) run.dropJournal.run(id);
    for (const event of entries.spill) {
      const { function: name, sequence, view, body, oldBody } = event;
      run.putSpill.run(name, sequence, view, headerOf(event), body, oldBody ?? null);
      if (step.isFull(body.length + (oldBody?.length ?? 0))) yield;
    }
    for (const { function: name, sequence } of entries.unspill) run.dropSpill.run(name, sequence);
    for (const { function: name, key, value } of entries.state) {
      if (value === undefined) run.dropState.run(name, key);
      else run.putState.run(name, key, value);
    }
    // Rows are deleted before new ones are written, so that the file grows no larger than its contents.
    for (const letter of entries.droppedDeadLetters) run.dropLetter.run(Number(letter));
    for (const letter of entries.emptiedDeadLetters) run.dropBody.run(noBody, Number(letter));
    for (const event of entries.deadLetters) {
      const { letter, function: name, body, oldBody } = event;
      run.putLetter.run(Number(letter), name, headerOf(event), body, oldBody ?? null);
      if (step.isFull(body.length + (oldBody?.length ?? 0))) yield;
    }
  }
}

const noBody = Buffer.alloc(0);

/** Removes attempts of deleted views from the journal. */
const dropBegun = `
UPDATE journal SET started =
  (SELECT json_group_array(json(value)) FROM json_each(started) WHERE value ->> 0 IN (SELECT id FROM view))
WHERE EXISTS (SELECT 1 FROM json_each(started) WHERE value ->> 0 NOT IN (SELECT id FROM view));
DELETE FROM journal WHERE started = '[]';
`;

const prepare = (db: DatabaseSync) =>
  ({
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    fence: db.prepare("SELECT fence FROM meta"),
    putCluster: db.prepare("UPDATE meta SET cluster = ?"),
    putPaused: db.prepare("INSERT OR REPLACE INTO paused (function, since) VALUES (?, ?)"),
    dropPaused: db.prepare("DELETE FROM paused WHERE function = ?"),
    releaseView: db.prepare("UPDATE view SET trigger = char(0) || id WHERE id = ?"),
    putView: db.prepare(
      `INSERT INTO view (id, function, trigger, resource, retired_at, identity, manifest) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET trigger = excluded.trigger, retired_at = excluded.retired_at,
         identity = excluded.identity, manifest = excluded.manifest`,
    ),
    dropView: db.prepare("DELETE FROM view WHERE id = ?"),
    putCursor: db.prepare("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?, ?, ?)"),
    dropCursor: db.prepare("DELETE FROM cursor WHERE view = ? AND namespace = ?"),
    putJournal: db.prepare("INSERT OR REPLACE INTO journal VALUES (?, ?)"),
    dropJournal: db.prepare("DELETE FROM journal WHERE id = ?"),
    putSpill: db.prepare("INSERT OR REPLACE INTO spill VALUES (?, ?, ?, ?, ?, ?)"),
    dropSpill: db.prepare("DELETE FROM spill WHERE function = ? AND sequence = ?"),
    putState: db.prepare("INSERT OR REPLACE INTO own_state (function, key, value) VALUES (?, ?, ?)"),
    dropState: db.prepare("DELETE FROM own_state WHERE function = ? AND key = ?"),
    putLetter: db.prepare("INSERT INTO dead_letter (id, function, header, body, old_body) VALUES (?, ?, ?, ?, ?)"),
    dropBody: db.prepare("UPDATE dead_letter SET body = ?, old_body = NULL WHERE id = ?"),
    dropLetter: db.prepare("DELETE FROM dead_letter WHERE id = ?"),
  }) satisfies Record<string, StatementSync>;
