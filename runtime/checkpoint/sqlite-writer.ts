import type { DatabaseSync, StatementSync } from "node:sqlite";
import { WatchfireError } from "../errors.ts";
import type { Batch, KnownIdentity, KnownWrite } from "./batch.ts";
import type { LetterCut, LetterLedger } from "./letter-ledger.ts";
import { headerOf } from "./sqlite-rows.ts";

/** The bits of `known.flags`. `olderBody`: what `body` has of it is of an earlier state. */
export const knownFlags = { deleted: 1, matched: 2, olderBody: 4 } as const;

/** Writes batches: one transaction each, one prepared statement per kind of row. */
export class SqliteWriter {
  private readonly db: DatabaseSync;
  private readonly file: string;
  private readonly fence: number;
  private readonly ledger: LetterLedger;
  private readonly statements: ReturnType<typeof prepare>;

  constructor(db: DatabaseSync, file: string, fence: number, ledger: LetterLedger) {
    this.db = db;
    this.file = file;
    this.fence = fence;
    this.ledger = ledger;
    this.statements = prepare(db);
    this.countLetters();
  }

  /** Gives the ids of the batch's dead letters. */
  write(batch: Batch): readonly string[] {
    const { ids, cuts } = this.transaction(() => {
      const held = this.statements.fence.get()?.fence;
      if (held !== this.fence) {
        throw new WatchfireError("WF_CHECKPOINT_FENCED", {
          what: `its fence is no longer ${this.fence}`,
          place: { file: this.file },
          actual: held,
        });
      }
      this.rows(batch);
      return this.letters(batch);
    });
    this.ledger.counted(cuts);
    return ids;
  }

  /** Takes what goes beyond the ledger's limits out of the store. */
  cutLetters(): void {
    this.ledger.counted(this.transaction(() => this.cut()));
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
    this.statements.begin.run();
    try {
      const result = work();
      this.statements.commit.run();
      return result;
    } catch (error) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      this.countLetters();
      throw error;
    }
  }

  private rows(batch: Batch): void {
    const run = this.statements;
    for (const write of batch.known) this.known(write);
    for (const { view, key, body } of batch.bodies) {
      const row = run.bodyIsNew.get(view, key);
      if (row) run.putBody.run(Number(row.id), body);
    }
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
  private letters({ deadLetters, droppedDeadLetters }: Batch): { ids: string[]; cuts: LetterCut[] } {
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

  private cut(): LetterCut[] {
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

  private known({ view, key, state }: KnownWrite): void {
    if (!state) {
      this.statements.dropKnown.run(view, key);
      return;
    }
    const run = this.statements;
    const { uid, resourceVersion, hash, deleted, matched, body } = state;
    const keys = keysText(state);
    const flags = (deleted ? knownFlags.deleted : 0) | (matched ? knownFlags.matched : 0);
    if (body === "older") {
      run.putKnown.run(view, key, uid, resourceVersion, hash, flags | knownFlags.olderBody, keys);
      return;
    }
    const id = Number(run.putKnownId.get(view, key, uid, resourceVersion, hash, flags, keys)?.id);
    if (body) run.putBody.run(id, body);
    else run.dropLastBody.run(id);
  }
}

const noBody = Buffer.alloc(0);

/** A state's keys as a column has them, behind the resourceVersion that they are of; `null` where none are noted. */
const keysText = ({ keys, resourceVersion }: KnownIdentity): string | null =>
  keys ? JSON.stringify([resourceVersion, ...keys]) : null;

/** Takes out of the journal what is of no view any more. */
const dropBegun = `
UPDATE journal SET started =
  (SELECT json_group_array(json(value)) FROM json_each(started) WHERE value ->> 0 IN (SELECT id FROM view))
WHERE EXISTS (SELECT 1 FROM json_each(started) WHERE value ->> 0 NOT IN (SELECT id FROM view));
DELETE FROM journal WHERE started = '[]';
`;

const putKnown = `
INSERT INTO known (view, key, uid, resource_version, hash, flags, keys) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (view, key) DO UPDATE SET uid = excluded.uid, resource_version = excluded.resource_version,
  hash = excluded.hash, flags = excluded.flags, keys = excluded.keys`;

const prepare = (db: DatabaseSync) =>
  ({
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    fence: db.prepare("SELECT fence FROM meta"),
    putKnown: db.prepare(putKnown),
    putKnownId: db.prepare(`${putKnown} RETURNING id`),
    putBody: db.prepare("INSERT INTO body VALUES (?, ?) ON CONFLICT (known) DO UPDATE SET bytes = excluded.bytes"),
    bodyIsNew: db.prepare(
      `UPDATE known SET flags = flags & ~${knownFlags.olderBody} WHERE view = ? AND key = ? RETURNING id`,
    ),
    dropLastBody: db.prepare("DELETE FROM body WHERE known = ?"),
    dropKnown: db.prepare("DELETE FROM known WHERE view = ? AND key = ?"),
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
