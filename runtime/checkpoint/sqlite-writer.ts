import type { DatabaseSync, StatementSync } from "node:sqlite";
import { WatchfireError } from "../errors.ts";
import type { Batch, KnownWrite } from "./batch.ts";
import { headerOf } from "./sqlite-rows.ts";

/** The bits of `known.flags`. */
export const knownFlags = { deleted: 1, matched: 2 } as const;

/** Writes batches: one transaction each, one prepared statement per kind of row. */
export class SqliteWriter {
  private readonly db: DatabaseSync;
  private readonly file: string;
  private readonly fence: number;
  private readonly statements: ReturnType<typeof prepare>;

  constructor(db: DatabaseSync, file: string, fence: number) {
    this.db = db;
    this.file = file;
    this.fence = fence;
    this.statements = prepare(db);
  }

  write(batch: Batch): void {
    this.transaction(() => {
      const held = this.statements.fence.get()?.fence;
      if (held !== this.fence) {
        throw new WatchfireError("WF_CHECKPOINT_FENCED", {
          what: `its fence is no longer ${this.fence}`,
          place: { file: this.file },
          actual: held,
        });
      }
      this.rows(batch);
    });
  }

  /** Deletes views that were retired before `before`; what else they hold goes with them. Gives their number. */
  purge(before: number): number {
    return this.transaction(() => {
      const { changes } = this.db.prepare("DELETE FROM view WHERE retired_at < ?").run(before);
      if (changes > 0) this.db.exec(dropBegun);
      return Number(changes);
    });
  }

  /** Runs `work` in a transaction that holds the write lock from its start. */
  transaction<T>(work: () => T): T {
    this.db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.db.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      throw error;
    }
  }

  private rows(batch: Batch): void {
    const run = this.statements;
    for (const write of batch.known) this.known(write);
    for (const { view, namespace } of batch.droppedCursors) run.dropCursor.run(view, namespace);
    for (const { view, namespace, selection, lowWaterMark, epoch, initial } of batch.cursors) {
      run.putCursor.run(view, namespace, selection, lowWaterMark ?? null, epoch, initial ? 1 : 0);
    }
    for (const { id, started } of batch.journal) {
      const rows = started.map((it) => [it.view, it.key, it.id, it.resourceVersion, it.type, it.attempt]);
      run.putJournal.run(id, JSON.stringify(rows));
    }
    for (const id of batch.settledJournal) run.dropJournal.run(id);
    for (const event of batch.spill) {
      const { function: name, sequence, view, body, oldBody } = event;
      run.putSpill.run(name, sequence, view, headerOf(event), body, oldBody ?? null);
    }
    for (const { function: name, sequence } of batch.unspill) run.dropSpill.run(name, sequence);
    for (const letter of batch.deadLetters) {
      run.putLetter.run(letter.function, headerOf(letter), letter.body, letter.oldBody ?? null);
    }
    for (const letter of batch.droppedDeadLetters) run.dropLetter.run(Number(letter));
  }

  private known({ view, key, state }: KnownWrite): void {
    if (!state) {
      this.statements.dropKnown.run(view, key);
      return;
    }
    const flags = (state.deleted ? knownFlags.deleted : 0) | (state.matched ? knownFlags.matched : 0);
    this.statements.putKnown.run(view, key, state.uid, state.resourceVersion, state.hash, flags, state.body ?? null);
  }
}

/** Takes out of the journal what is of no view any more. */
const dropBegun = `
UPDATE journal SET started =
  (SELECT json_group_array(json(value)) FROM json_each(started) WHERE value ->> 0 IN (SELECT id FROM view))
WHERE EXISTS (SELECT 1 FROM json_each(started) WHERE value ->> 0 NOT IN (SELECT id FROM view));
DELETE FROM journal WHERE started = '[]';
`;

const prepare = (db: DatabaseSync) =>
  ({
    fence: db.prepare("SELECT fence FROM meta"),
    putKnown: db.prepare(
      `INSERT INTO known (view, key, uid, resource_version, hash, flags, body) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (view, key) DO UPDATE SET uid = excluded.uid, resource_version = excluded.resource_version,
         hash = excluded.hash, flags = excluded.flags, body = excluded.body`,
    ),
    dropKnown: db.prepare("DELETE FROM known WHERE view = ? AND key = ?"),
    putCursor: db.prepare("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?, ?, ?)"),
    dropCursor: db.prepare("DELETE FROM cursor WHERE view = ? AND namespace = ?"),
    putJournal: db.prepare("INSERT OR REPLACE INTO journal VALUES (?, ?)"),
    dropJournal: db.prepare("DELETE FROM journal WHERE id = ?"),
    putSpill: db.prepare("INSERT OR REPLACE INTO spill VALUES (?, ?, ?, ?, ?, ?)"),
    dropSpill: db.prepare("DELETE FROM spill WHERE function = ? AND sequence = ?"),
    putLetter: db.prepare("INSERT INTO dead_letter (function, header, body, old_body) VALUES (?, ?, ?, ?)"),
    dropLetter: db.prepare("DELETE FROM dead_letter WHERE id = ?"),
  }) satisfies Record<string, StatementSync>;
