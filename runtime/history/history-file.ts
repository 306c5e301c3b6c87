import { closeSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { diskRoom } from "../journal/sqlite/disk-room.ts";
import { type SqlRow, type SqlStep, SqlThread, type SqlValue } from "./sql-thread.ts";

/** The version of the tables. */
const version = 2;
/** The statements that bring the tables of each earlier version to the next one. */
const upgrades: { readonly [from: number]: readonly string[] } = {
  1: ["ALTER TABLE runs ADD COLUMN cpu REAL", "ALTER TABLE runs ADD COLUMN heap INTEGER"],
};

const pageBytes = 4096;
/**
 * The file's share of the size. The rest is the write-ahead log's, which is copied into the file once it has `logShare`, at most
 * `mostLogBytes`, and which one more batch may exceed.
 */
const fileShare = 0.75;
const logShare = 1 / 16;
const mostLogBytes = 4 * 2 ** 20;
/** The share of the disk that the history may take. The checkpoints have the rest. */
const diskShare = 1 / 16;
/** Old rows are deleted above this share of the file. */
const fullShare = 0.9;
/** Rows that are deleted by one statement, and statements per call, so that the thread stays available. */
const deletedAtOnce = 250;
const deletionsAtOnce = 40;
/** SQLite's primary result codes (sqlite3.h): another process has the file; there is no room. */
const busyCode = 5;
const fullCode = 13;
/** Estimated bytes of a row beyond its longest text: columns, indexes. */
const runBytes = 300;
const lineBytes = 100;

const tables = [
  `CREATE TABLE IF NOT EXISTS runs (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, function TEXT NOT NULL, run TEXT NOT NULL,
    trigger TEXT NOT NULL, type TEXT NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL, version TEXT NOT NULL,
    attempt INTEGER NOT NULL, redelivered INTEGER NOT NULL, outcome TEXT NOT NULL, waited REAL, took REAL NOT NULL,
    called INTEGER NOT NULL, detail TEXT, extra TEXT, cpu REAL, heap INTEGER) STRICT`,
  // The number is the last part of every index, so each answers newest first. Ids have no index: they are in no order, so
  // each of them would write another page.
  "CREATE INDEX IF NOT EXISTS runs_by_function ON runs (function)",
  "CREATE INDEX IF NOT EXISTS runs_by_failure ON runs (outcome) WHERE outcome <> 'ok'",
  `CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, function TEXT NOT NULL, run TEXT, line TEXT NOT NULL) STRICT`,
  "CREATE INDEX IF NOT EXISTS lines_by_function ON lines (function)",
  // Without a function of their own, so that they are one portion: the function is in the text.
  `CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, function TEXT NOT NULL, line TEXT NOT NULL) STRICT`,
];
const tableNames = ["runs", "lines", "changes"] as const;
type TableName = (typeof tableNames)[number];

const sizes: { readonly [table in TableName]: string } = {
  runs: `${runBytes} + ifnull(length(detail), 0) + ifnull(length(extra), 0)`,
  lines: `${lineBytes} + length(line)`,
  changes: `${lineBytes} + length(line)`,
};

/** A function's rows of one table. */
interface Portion {
  readonly table: TableName;
  readonly function: string;
  bytes: number;
}

interface HistoryFileOptions {
  /** `undefined`: in memory. */
  readonly file: string | undefined;
  /** Maximum bytes, including the write-ahead log. */
  readonly bytes: number;
}

/** A row and its function. */
export interface NewRow {
  readonly function: string;
  readonly values: readonly SqlValue[];
  /** Characters of its long text. */
  readonly length: number;
}

/** The file was written by a newer version of Watchfire. It is left as it is. */
export class NewerHistory extends Error {
  constructor(found: number, known: number) {
    super(`it has format ${found}, and this version of Watchfire writes format ${known}`);
  }
}

/** True if another process has the file at present. */
export const isBusy = (error: unknown): boolean => primaryCode(error) === busyCode;

const isFull = (error: unknown): boolean => primaryCode(error) === fullCode;

const primaryCode = (error: unknown): number | undefined =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : undefined;

/**
 * The tables of runs, log lines and changes, within a number of bytes. If they are full, the oldest rows of the function with the most bytes are
 * deleted, so that a busy function does not take the history of the others. Methods reject with a SqlFault.
 */
export class HistoryFile {
  private readonly options: HistoryFileOptions;
  private readonly thread = new SqlThread();
  /** Keyed by table and function. */
  private readonly portions = new Map<string, Portion>();
  private maxPages = 0;

  constructor(options: HistoryFileOptions) {
    this.options = options;
  }

  /** Opens or creates the tables. Rejects with `isBusy` while another process has the file: it may be tried again. */
  async open(): Promise<void> {
    const { file, bytes } = this.options;
    if (file !== undefined) makePrivate(file);
    const room = file === undefined ? bytes : Math.min(bytes, diskShare * (diskRoom(dirname(file)) + sizeOf(file)));
    const log = Math.min(mostLogBytes, room * logShare);
    this.maxPages = Math.max(64, Math.floor((fileShare * room) / pageBytes));
    await this.thread.open(file ?? ":memory:", [
      // One process alone has the file, without a file of shared memory.
      "PRAGMA locking_mode = EXCLUSIVE",
      `PRAGMA page_size = ${pageBytes}`,
      "PRAGMA journal_mode = WAL",
      "PRAGMA synchronous = NORMAL",
      "PRAGMA cache_size = -2048",
      `PRAGMA wal_autocheckpoint = ${Math.floor(log / pageBytes)}`,
      `PRAGMA journal_size_limit = ${Math.floor(log)}`,
      // Takes the lock.
      "BEGIN IMMEDIATE; COMMIT",
    ]);
    const [[found] = []] = await this.thread.ask([{ sql: "PRAGMA user_version" }]);
    const foundVersion = Number(found?.user_version ?? 0);
    if (foundVersion > version) throw new NewerHistory(foundVersion, version);
    const changes: string[] = [];
    // A new file has version 0.
    if (foundVersion > 0) for (let from = foundVersion; from < version; from++) changes.push(...(upgrades[from] ?? []));
    await this.thread.ask([...changes, ...tables, `PRAGMA user_version = ${version}`].map((sql) => ({ sql })));
    const counts = await this.thread.ask(
      tableNames.map((table) => ({
        sql: `SELECT function, sum(${sizes[table]}) AS bytes FROM ${table} GROUP BY function`,
      })),
    );
    for (const [index, table] of tableNames.entries()) {
      for (const row of counts[index] ?? []) this.portion(table, String(row.function)).bytes = Number(row.bytes);
    }
    await this.shrink();
    // SQLite refuses to write more pages than this.
    await this.thread.ask([{ sql: `PRAGMA max_page_count = ${this.maxPages}` }]);
  }

  /** The last number that was given to a run; 0 without one. */
  async lastNumber(): Promise<number> {
    const [[row] = []] = await this.thread.ask([{ sql: "SELECT ifnull(max(number), 0) AS number FROM runs" }]);
    return Number(row?.number ?? 0);
  }

  /** Adds rows, and deletes old ones if there is no room. */
  async write(rows: { readonly [table in TableName]?: readonly NewRow[] }): Promise<void> {
    const steps = tableNames.flatMap((table) => insertion(table, rows[table] ?? []));
    try {
      await this.thread.ask(steps);
    } catch (error) {
      if (!isFull(error)) throw error;
      await this.makeRoom(true);
      await this.thread.ask(steps);
    }
    for (const table of tableNames) {
      const base = table === "runs" ? runBytes : lineBytes;
      for (const row of rows[table] ?? []) this.portion(table, row.function).bytes += base + row.length;
    }
    await this.makeRoom();
  }

  /** Deletes the rows below a number. Returns whether there may be more of them. */
  async expire(number: number): Promise<boolean> {
    let more = false;
    for (const table of tableNames) {
      const expired = `SELECT number FROM ${table} WHERE number < ? ORDER BY number LIMIT ${deletedAtOnce}`;
      more = (await this.remove(table, expired, [number])) === deletedAtOnce || more;
    }
    return more;
  }

  /** Returns the rows of a query. */
  async query(sql: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]> {
    const [rows = []] = await this.thread.ask([{ sql, values }]);
    return rows;
  }

  /** Never rejects. */
  close(): Promise<void> {
    return this.thread.close();
  }

  /** Deletes the oldest rows of the largest portions, until there is room. `now`: at least once. */
  private async makeRoom(now = false): Promise<void> {
    for (let times = 0; times < deletionsAtOnce; times++) {
      if (!(now && times === 0) && (await this.usedPages()) <= fullShare * this.maxPages) return;
      let largest: Portion | undefined;
      for (const portion of this.portions.values()) if (portion.bytes > (largest?.bytes ?? 0)) largest = portion;
      if (!largest) return;
      const { table, function: name } = largest;
      const oldest = `SELECT number FROM ${table} WHERE function = ? ORDER BY number LIMIT ${deletedAtOnce}`;
      const removed = await this.remove(table, oldest, [name]);
      if (removed < deletedAtOnce) this.portions.delete(keyOf(table, name));
    }
  }

  /** Deletes the rows that a query selects. Returns their number. */
  private async remove(table: TableName, numbers: string, values: readonly SqlValue[]): Promise<number> {
    const chosen = `FROM ${table} WHERE number IN (${numbers})`;
    const [rows = []] = await this.thread.ask([
      { sql: `SELECT function, count(*) AS count, sum(${sizes[table]}) AS bytes ${chosen} GROUP BY function`, values },
      { sql: `DELETE ${chosen}`, values },
    ]);
    let removed = 0;
    for (const { function: name, count, bytes } of rows) {
      const portion = this.portion(table, String(name));
      portion.bytes = Math.max(0, portion.bytes - Number(bytes));
      removed += Number(count);
    }
    return removed;
  }

  /** Makes a file smaller that had a larger limit. */
  private async shrink(): Promise<void> {
    const [[row] = []] = await this.thread.ask([{ sql: "PRAGMA page_count" }]);
    if (Number(row?.page_count) <= this.maxPages) return;
    while ((await this.usedPages()) > fullShare * this.maxPages && this.portions.size > 0) await this.makeRoom();
    if (this.options.file !== undefined) await this.thread.vacuum();
  }

  private async usedPages(): Promise<number> {
    const [[count] = [], [free] = []] = await this.thread.ask([
      { sql: "PRAGMA page_count" },
      { sql: "PRAGMA freelist_count" },
    ]);
    return Number(count?.page_count) - Number(free?.freelist_count);
  }

  private portion(table: TableName, name: string): Portion {
    const key = keyOf(table, name);
    let portion = this.portions.get(key);
    if (!portion) {
      portion = { table, function: name, bytes: 0 };
      this.portions.set(key, portion);
    }
    return portion;
  }
}

const keyOf = (table: TableName, name: string): string => `${table} ${name}`;

function insertion(table: TableName, rows: readonly NewRow[]): SqlStep[] {
  const [first] = rows;
  if (!first) return [];
  const marks = first.values.map(() => "?").join(", ");
  return [{ sql: `INSERT OR REPLACE INTO ${table} VALUES (${marks})`, rows: rows.map(({ values }) => values) }];
}

/** Creates the file, readable by its owner only. SQLite takes an empty file for a new one, and gives the log the file's mode. */
function makePrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
}

const sizeOf = (file: string): number =>
  [file, `${file}-wal`].reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
