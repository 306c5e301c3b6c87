import type { DatabaseSync, StatementSync } from "node:sqlite";
import { WatchfireError } from "../../base/errors.ts";
import type { Batch } from "../batch.ts";
import type { DeadLetterCut, DeadLetterStats } from "../dead-letter-stats.ts";
import { headerOf } from "../rows.ts";
import type { SqliteKnown } from "./known.ts";
import { noteNoLog } from "./schema.ts";

/** Writes batches: one transaction each, one prepared statement per kind of row. */
export class SqliteWriter {
  private readonly db: DatabaseSync;
  private readonly file: string;
  private readonly fence: number;
  private readonly ledger: DeadLetterStats;
  private readonly known: SqliteKnown;
  private readonly statements: ReturnType<typeof prepare>;

  constructor(db: DatabaseSync, file: string, fence: number, ledger: DeadLetterStats, known: SqliteKnown) {
    this.db = db;
    this.known = known;
    this.file = file;
    this.fence = fence;
    this.ledger = ledger;
    this.statements = prepare(db);
    this.countLetters();
  }

  /** Gives the ids of the batch's dead letters. */
  write(batch: Batch): readonly string[] {
    const { ids, cuts } = this.transaction(() => {
      this.assertOurs();
      this.rows(batch);
      return this.letters(batch);
    });
    this.ledger.counted(cuts);
    return ids;
  }

  /** Folds some of the log of known objects into their table. */
  fold(): void {
    this.transaction(() => {
      this.assertOurs();
      this.known.fold();
    });
  }

  /** Folds all of it. A runtime that knows no such log can use the file then. */
  foldAll(): void {
    this.transaction(() => {
      this.assertOurs();
      this.known.fold(true);
      noteNoLog(this.db);
    });
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

  /** Takes what goes beyond the ledger's limits out of the store. */
  cutLetters(): void {
    this.ledger.counted(this.transaction(() => this.cut()));
  }

  /** Deletes views that were retired before `before`; what else they hold goes with them. Gives their number. */
  purge(before: number): number {
    return this.transaction(() => {
      const gone = this.db.prepare("DELETE FROM view WHERE retired_at < ? RETURNING id").all(before);
      this.known.forget(gone.map(({ id }) => Number(id)));
      if (gone.length > 0) this.db.exec(dropBegun);
      return gone.length;
    });
  }

  /** Runs `work` in a transaction that holds the write lock from its start. */
  transaction<T>(work: () => T): T {
    this.statements.begin.run();
    try {
      const result = work();
      this.statements.commit.run();
      return result;
    } catch (error) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      this.known.rolledBack();
      this.countLetters();
      throw error;
    }
  }

  private rows(batch: Batch): void {
    const run = this.statements;
    this.known.write(batch.known, batch.bodies);
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
  }

  /** Gives the ids of the new ones, and what had to go. Room is made before each is written, so that the file grows no larger than what is kept. */
  private letters({ deadLetters, droppedDeadLetters }: Batch): { ids: string[]; cuts: DeadLetterCut[] } {
    const run = this.statements;
    for (const letter of droppedDeadLetters) {
      run.dropLetter.run(Number(letter));
      this.ledger.remove(letter);
    }
    const ids: string[] = [];
    const cuts = deadLetters.flatMap(({ function: name, body, oldBody, ...letter }) => {
      const header = JSON.stringify({ function: name, ...letter });
      const size = { record: header.length, body: body.length + (oldBody?.length ?? 0) };
      const keeps = this.ledger.admit(name, size);
      const gone = this.cut();
      const { lastInsertRowid } = run.putLetter.run(name, header, keeps ? body : noBody, (keeps && oldBody) || null);
      ids.push(String(lastInsertRowid));
      this.ledger.add(name, String(lastInsertRowid), keeps ? size : { ...size, body: 0 });
      return gone;
    });
    return { ids, cuts };
  }

  private cut(): DeadLetterCut[] {
    const cuts = this.ledger.cuts();
    for (const { letters, bodies } of cuts) {
      for (const letter of letters) this.statements.dropLetter.run(Number(letter));
      for (const letter of bodies) this.statements.dropBody.run(noBody, Number(letter));
    }
    return cuts;
  }

  /** From the disk: after a transaction that was rolled back, too. */
  private countLetters(): void {
    this.ledger.reset();
    for (const { id, function: name, record, body } of this.statements.letters.iterate()) {
      this.ledger.add(String(name), String(id), { record: Number(record), body: Number(body) });
    }
  }
}

const noBody = Buffer.alloc(0);

/** Takes out of the journal what is of no view any more. */
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
    putCursor: db.prepare("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?, ?, ?)"),
    dropCursor: db.prepare("DELETE FROM cursor WHERE view = ? AND namespace = ?"),
    putJournal: db.prepare("INSERT OR REPLACE INTO journal VALUES (?, ?)"),
    dropJournal: db.prepare("DELETE FROM journal WHERE id = ?"),
    putSpill: db.prepare("INSERT OR REPLACE INTO spill VALUES (?, ?, ?, ?, ?, ?)"),
    dropSpill: db.prepare("DELETE FROM spill WHERE function = ? AND sequence = ?"),
    putLetter: db.prepare("INSERT INTO dead_letter (function, header, body, old_body) VALUES (?, ?, ?, ?)"),
    dropBody: db.prepare("UPDATE dead_letter SET body = ?, old_body = NULL WHERE id = ?"),
    letters: db.prepare(
      `SELECT id, function, length(header) AS record, length(body) + coalesce(length(old_body), 0) AS body
       FROM dead_letter ORDER BY id`,
    ),
    dropLetter: db.prepare("DELETE FROM dead_letter WHERE id = ?"),
  }) satisfies Record<string, StatementSync>;
