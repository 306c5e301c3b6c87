import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { makeFolder } from "../../base/folder.ts";
import type { JournalEntries, KnownBody, KnownIdentity } from "../batch.ts";
import type { DeadLetterSize } from "../dead-letter-stats.ts";
import { type Journal, type PreviousEnd, type QueueRange, type Queues, takeWithin } from "../journal.ts";
import { type Row, readLetter, readLetterSummary, readSpilled, readSpillHeader } from "../rows.ts";
import type { JournalState } from "../state.ts";
import { diskRoom, sharesOf } from "./disk-room.ts";
import { checkpointFault, isBusy, isFull } from "./fault.ts";
import { assertFilled, assertWritable, fileBehind, filesOf, makeDatabase } from "./files.ts";
import { SqliteKnown } from "./known.ts";
import { SqliteLock } from "./lock.ts";
import { SqliteLog } from "./log.ts";
import { frameHeaderBytes, logLengthOf } from "./log-thread.ts";
import { assertOurs, takeOver } from "./schema.ts";
import { readState } from "./state.ts";
import { emptyLog, rewriteIfEmpty, SqliteUpkeep } from "./upkeep.ts";
import { SqliteWriter, type WriteSteps } from "./writer.ts";

interface SqliteJournalOptions {
  /** The data folder. Created, readable by its owner only, if it does not exist. */
  readonly folder: string;
  /**
   * True if a command opens the store while no runtime uses it. The store must exist, and the record of how the last run ended
   * stays for the next start. Default false.
   */
  readonly maintenance?: boolean;
  /** Enables upkeep: the file is kept small, and its limits follow the disk. Default: no upkeep, as for a command. */
  readonly clock?: Clock;
  /** Returns how large the store could become, in bytes. Default: its size and the free space of its disk. */
  readonly room?: () => number;
  /** Identifies the machine's boot. Default: the kernel's boot id. */
  readonly bootId?: string;
  /** Maximum number of rows in the log of known objects. Default 32,768. */
  readonly loggedRows?: number | undefined;
}

/** Rows of the log of known objects that are read in one turn of the event loop, in 7 ms. */
const rowsAtOnce = 4_000;
/** Waiting events that are marked as possibly delivered in one turn. There may be as many as the disk has room for. */
const notedAtOnce = 500;

/**
 * Half of SQLite's default. An update of a known object with a body of 2.5 KB costs 6 us of CPU instead of 10 if neighbouring
 * rows change together, and 11 instead of 12 otherwise. With bodies of 8 KB and more it costs a fifth more.
 */
const pageBytes = 2048;

/** Minimum share of the log, even on a disk that is nearly full. */
const minLogBytes = 256 * 1024;

/**
 * The store in one SQLite file, `checkpoint.db`. Its folder is locked while it is open, so that a second runtime fails with
 * WF_CHECKPOINT_LOCKED. The kernel frees the lock however the process dies. Commits are not synced individually
 * (`synchronous=NORMAL`): a killed process loses no commit. A machine that goes down may lose the last commits, each as a whole;
 * `previousEnd` reports that.
 */
export class SqliteJournal implements Journal {
  readonly previousEnd: PreviousEnd;
  readonly capabilities = { queues: true, bodies: true, packed: false };
  readonly state: JournalState;
  room: Journal["room"] = sharesOf(0);
  private readonly lock: SqliteLock;
  private readonly db: DatabaseSync;
  private readonly log: SqliteLog;
  private readonly objects: SqliteKnown;
  private readonly file: string;
  /** The file's inode, to detect that another file has taken its place. */
  private readonly inode: bigint;
  private readonly writer: SqliteWriter;
  private readonly maintenance: boolean;
  private readonly diskRoom: () => number;
  /** Size of the file, in bytes, from which on no last body is stored. */
  private bodyLimit = Number.POSITIVE_INFINITY;
  /** Resolves when the transaction ends that takes several turns of the event loop. Never rejects. */
  private open: Promise<void> | undefined;
  private readonly upkeep: SqliteUpkeep | undefined;

  constructor({ folder, maintenance = false, bootId = kernelBootId(), clock, room, loggedRows }: SqliteJournalOptions) {
    this.maintenance = maintenance;
    this.diskRoom = room ?? (() => diskRoom(folder));
    this.file = fileBehind(join(folder, "checkpoint.db"));
    if (maintenance && !existsSync(this.file)) {
      throw new WatchfireError("WF_CHECKPOINT_MISSING", { what: "no checkpoint.db", place: { file: folder } });
    }
    let lock: SqliteLock | undefined;
    let db: DatabaseSync | undefined;
    try {
      makeFolder(folder, 0o700);
      lock = new SqliteLock(folder);
      for (const file of filesOf(this.file)) assertWritable(file);
      assertFilled(this.file);
      // Checked again, since another process may have created the file before the lock was held. An existing file keeps its page
      // size.
      if (!existsSync(this.file))
        makeDatabase(this.file, `PRAGMA page_size = ${pageBytes}; PRAGMA auto_vacuum = INCREMENTAL`);
      db = new DatabaseSync(this.file, { timeout: 0 });
      assertOurs(db, this.file);
      chmodSync(this.file, 0o600);
      // Synced, so that a power loss cannot undo the record that the store is in use. Later commits are not synced individually.
      db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
      db.exec("PRAGMA cache_size = -16000; PRAGMA foreign_keys = ON");
      this.inode = statSync(this.file, { bigint: true }).ino;
      this.log = new SqliteLog(this.file, logLengthOf(db));
      this.measure();
      db.exec("BEGIN EXCLUSIVE");
      const { previousEnd, fence } = takeOver(db, this.file, maintenance ? undefined : bootId);
      db.exec("COMMIT");
      if (!maintenance) {
        emptyLog(db);
        if (rewriteIfEmpty(db)) emptyLog(db);
      }
      db.exec("PRAGMA synchronous = NORMAL");
      this.previousEnd = previousEnd;
      this.lock = lock;
      this.db = db;
      this.objects = new SqliteKnown(db, loggedRows);
      this.writer = new SqliteWriter(db, this.file, fence, this.objects);
      this.state = readState(db);
      this.upkeep =
        clock &&
        new SqliteUpkeep(db, clock, {
          looked: () => {
            if (!this.isGone) this.measure();
            this.log.look();
          },
          wrote: (pages) => this.log.wrote(pages * frameBytes),
          shrunk: () => void this.log.copyAll(),
        });
    } catch (error) {
      if (db?.isOpen) db.close();
      lock?.release();
      throw checkpointFault(error, this.file);
    }
  }

  /** Updates the limits, since the disk has other users and may grow. */
  private measure(): void {
    const shares = sharesOf(this.diskRoom());
    this.room = shares;
    this.bodyLimit = shares.bodies;
    this.log.limit = Math.max(minLogBytes, Math.floor(shares.log));
  }

  /** True if the file was removed. SQLite would continue to write into a file without a name. False if it cannot be checked. */
  private get isGone(): boolean {
    try {
      const there = statSync(this.file, { bigint: true, throwIfNoEntry: false });
      return !there || (there.isFile() && there.ino !== this.inode);
    } catch {
      return false;
    }
  }

  private get goneFault(): WatchfireError | undefined {
    const fault = { what: "it was removed or replaced", place: { file: this.file } };
    return this.isGone ? new WatchfireError("WF_CHECKPOINT_GONE", fault) : undefined;
  }

  async known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void> {
    const logged = new Map<string, KnownIdentity>();
    let read = 0;
    for (const { seq, rows } of this.guard(() => this.objects.recordsOf(view))) {
      this.guard(() => this.objects.logged(view, seq, (key, identity) => logged.set(key, identity)));
      read += rows;
      if (read < rowsAtOnce) continue;
      read = 0;
      await nextTurn();
    }
    const newest = (key: string, identity: KnownIdentity) => {
      visit(key, logged.get(key) ?? identity);
      logged.delete(key);
    };
    for (let after: string | undefined = ""; after !== undefined; ) {
      const from: string = after;
      after = this.guard(() => this.objects.page(view, from, newest));
      if (after !== undefined) await nextTurn();
    }
    for (const [key, identity] of logged) visit(key, identity);
  }

  async body(view: number, key: string): Promise<KnownBody | undefined> {
    return this.guard(() => this.objects.body(view, key));
  }

  headers<Q extends keyof Queues>(queue: Q, range: QueueRange): Iterable<Queues[Q]["header"]> {
    return this.queue(queue, range, "header, length(body) AS size", queues[queue].header);
  }

  async page<Q extends keyof Queues>(queue: Q, range: QueueRange, bytes = Number.POSITIVE_INFINITY) {
    // Otherwise it would return rows that may be rolled back.
    while (this.open) await this.open;
    return takeWithin(this.queue(queue, range, "header, body, old_body", queues[queue].whole), bytes);
  }

  private queue<T>(
    queue: keyof Queues,
    { function: name, after, limit = -1 }: QueueRange,
    columns: string,
    read: (row: Row) => T,
  ): Iterable<T> {
    const { table, number } = queues[queue];
    const of = name === undefined ? "" : "function = ? AND";
    const sql = `SELECT ${number} AS id, ${columns} FROM ${table} WHERE ${of} ${number} > ? ORDER BY ${number} LIMIT ?`;
    return this.each(sql, read, ...(name === undefined ? [] : [name]), after, limit);
  }

  letterSizes(): Iterable<readonly [string, string, DeadLetterSize]> {
    const sql = `SELECT id, function, length(header) AS record, length(body) + coalesce(length(old_body), 0) AS body
      FROM dead_letter ORDER BY id`;
    return this.each(sql, ({ id, function: name, record, body }) => [
      String(name),
      String(id),
      { record: Number(record), body: Number(body) },
    ]);
  }

  /** Marks all of a function's spill as possibly delivered to a handler. */
  private async markSpillPossiblyDelivered(functionName: string): Promise<void> {
    const next = this.db.prepare(
      `SELECT max(sequence) AS last FROM
       (SELECT sequence FROM spill WHERE function = ? AND sequence > ? ORDER BY sequence LIMIT ?)`,
    );
    const note = this.db.prepare(
      `UPDATE spill SET header = json_set(header, '$.redelivered', json('true'))
       WHERE function = ? AND sequence > ? AND sequence <= ? AND json_extract(header, '$.redelivered') IS NOT 1`,
    );
    for (let from = Number.MIN_SAFE_INTEGER; ; await nextTurn()) {
      const last = this.guard(() => next.get(functionName, from, notedAtOnce))?.last;
      if (typeof last !== "number") return;
      await this.write(() => note.run(functionName, from, last));
      from = last;
    }
  }

  async append(entries: JournalEntries): Promise<void> {
    const gone = this.goneFault;
    if (gone) throw gone;
    if (this.log.isFull) await this.log.room().catch((error) => Promise.reject(checkpointFault(error, this.file)));
    this.objects.bodyLimit = this.bodyLimit;
    await this.write(() => this.begin(entries));
    if (entries.possiblyDelivered !== undefined) await this.markSpillPossiblyDelivered(entries.possiblyDelivered);
    this.log.wrote((pagesOf(entries) + this.objects.takePages()) * frameBytes);
    if (entries.goneViews.length > 0) this.log.copy();
  }

  /** Writes entries at once, or begins to. Returns a promise of the rest. */
  private begin(entries: JournalEntries): Promise<void> | undefined {
    const steps = this.writer.write(entries);
    if (!steps.next().done) {
      const rest = this.finish(steps, entries);
      this.open = rest.catch(() => {});
      return rest;
    }
    this.state.apply(entries);
    return undefined;
  }

  /** Completes a write, with a turn of the event loop before each step. */
  private async finish(steps: WriteSteps, entries: JournalEntries): Promise<void> {
    try {
      do await nextTurn();
      while (!this.guard(() => steps.next()).done);
      this.state.apply(entries);
    } finally {
      this.open = undefined;
    }
  }

  async sync(): Promise<void> {}

  /** @throws WatchfireError WF_CHECKPOINT_GONE, after it is closed, because nobody may believe that the checkpoints are kept */
  async close(clean: boolean): Promise<void> {
    try {
      await this.end(clean);
    } catch (error) {
      throw this.goneFault ?? error;
    }
    const gone = this.goneFault;
    if (gone) throw gone;
  }

  private async end(clean: boolean): Promise<void> {
    this.upkeep?.stop();
    await this.open;
    if (clean && !this.objects.isFolded) await this.foldByTurns();
    if (this.log.isRunning) await this.log.close();
    this.guard(() => {
      try {
        if (clean || this.objects.isFolded) this.foldAll();
        if (!this.maintenance) this.db.prepare("UPDATE meta SET clean = ?").run(clean ? 1 : 0);
        this.db.close();
      } finally {
        this.lock.release();
      }
    });
  }

  /** Folds the log of known objects over several turns. Leaves what cannot be folded to `foldAll`. */
  private async foldByTurns(): Promise<void> {
    try {
      while (!this.objects.isFolded) {
        if (this.log.isFull) await this.log.room();
        await this.write(() => this.writer.fold());
        this.log.wrote(this.objects.takePages() * frameBytes);
        await nextTurn();
      }
    } catch {
      // `foldAll` reports the reason if it matters.
    }
  }

  /** Folds what is left of the log. Leaves it in place if that fails: on a full disk, or after another runtime has taken over. */
  private foldAll(): void {
    try {
      this.writer.foldAll();
    } catch (error) {
      if (!isFull(error) && !(error instanceof WatchfireError)) throw error;
    }
  }

  /**
   * Runs a write, after the one that is under way. Retries it while the thread that copies the log holds the lock, usually for a
   * moment.
   */
  private async write<T>(work: () => T | Promise<T>): Promise<T> {
    for (;;) {
      while (this.open) await this.open;
      const { copied } = this.log;
      try {
        return work();
      } catch (error) {
        if (!copied || !isBusy(error)) throw checkpointFault(error, this.file);
        await copied;
      }
    }
  }

  /** Reads rows one by one, and keeps no row. */
  private *each<T>(sql: string, read: (row: Row) => T, ...values: (string | number)[]): Generator<T> {
    try {
      for (const row of this.db.prepare(sql).iterate(...values)) yield read(row);
    } catch (error) {
      throw checkpointFault(error, this.file);
    }
  }

  private guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw checkpointFault(error, this.file);
    }
  }
}

/** The tables of rows that are read on demand. */
const queues: {
  readonly [Q in keyof Queues]: {
    readonly table: string;
    readonly number: string;
    readonly header: (row: Row) => Queues[Q]["header"];
    readonly whole: (row: Row) => Queues[Q]["whole"];
  };
} = {
  spill: { table: "spill", number: "sequence", header: readSpillHeader, whole: readSpilled },
  letters: { table: "dead_letter", number: "id", header: readLetterSummary, whole: readLetter },
};

/** Size of a page in the log, with its header. */
const frameBytes = pageBytes + frameHeaderBytes;

/**
 * Estimates the pages that entries write apart from known objects. Many rows of one commit share pages, and a few rows share no
 * page.
 */
function pagesOf({ cursors, journal, settledJournal, spill, unspill, deadLetters, state }: JournalEntries): number {
  let written = 0;
  for (const { value } of state) written += value?.length ?? 0;
  for (const { body, oldBody } of [...spill, ...deadLetters]) written += body.length + (oldBody?.length ?? 0);
  const rows = spill.length + unspill.length + deadLetters.length + state.length;
  const few = (count: number) => Math.ceil(count / 8);
  return 2 + rows + few(cursors.length) + few(journal.length) + few(settledJournal.length) + written / pageBytes;
}

/** Returns Linux's boot id. Elsewhere every unclean end counts as a power loss, which only flags more events. */
function kernelBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return `unknown-${process.pid}-${Date.now()}`;
  }
}
