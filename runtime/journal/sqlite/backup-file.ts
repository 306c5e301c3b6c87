import { chmodSync, copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { WatchfireError } from "../../base/errors.ts";
import { sync } from "../../base/folder.ts";
import { systemReason } from "../../base/wording.ts";
import { Checkpoint } from "../checkpoint.ts";
import type { JournalState } from "../state.ts";
import { checkpointFault } from "./fault.ts";
import { assertFilled, assertWritable, fileBehind, filesOf } from "./files.ts";
import { SqliteJournal } from "./journal.ts";
import { assertOurs } from "./schema.ts";
import { readState } from "./state.ts";

/** Pages that are copied in one step on a thread of Node's pool: 2 MB. */
const stepPages = 1_000;
/** How long to wait for another connection's lock, in milliseconds. */
const lockWaitMs = 5_000;

/** The contents of a backup besides the checkpoints. */
export interface BackupNote {
  /** Epoch milliseconds. The backup has everything that was committed before. */
  readonly takenAt: number;
  /** The store that was read, such as `sqlite` or `fleet/64`. */
  readonly place: string;
  /** The version of the program that took it. */
  readonly version: string;
}

/** A backup, as it is read before it is restored. */
export interface Backup {
  readonly note: BackupNote;
  /** Its views, cursors and begun attempts. */
  readonly state: JournalState;
}

/** Created in backups alone. A runtime that opens the file ignores the table. */
const table = `CREATE TABLE IF NOT EXISTS backup (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  taken_at INTEGER NOT NULL,
  place TEXT NOT NULL,
  version TEXT NOT NULL
) STRICT;`;

const noteSchema = z.object({ taken_at: z.number(), place: z.string(), version: z.string() });

/**
 * Copies the store of a data folder into a new file, while a runtime uses the folder or not. The copy is the state at one moment:
 * a read transaction is open until its end. Meanwhile the runtime's write-ahead log cannot start over and grows.
 * @throws WatchfireError WF_CHECKPOINT_MISSING, and others of the checkpoint section; the file system's error of `file`
 */
export async function copyStore(folder: string, file: string): Promise<void> {
  const from = storeOf(folder);
  const db = openStored(from);
  try {
    db.exec("BEGIN");
    // The transaction begins with the first read.
    assertOurs(db, from);
    await backup(db, file, { rate: stepPages });
  } finally {
    db.close();
  }
}

/** Reads the views and cursors of a data folder. @throws WatchfireError of the checkpoint section */
export function readStoreState(folder: string): JournalState {
  const from = storeOf(folder);
  const db = openStored(from);
  try {
    assertOurs(db, from);
    return readState(db);
  } catch (error) {
    throw checkpointFault(error, from);
  } finally {
    db.close();
  }
}

function storeOf(folder: string): string {
  const file = fileBehind(join(folder, "checkpoint.db"));
  if (!existsSync(file))
    throw new WatchfireError("WF_CHECKPOINT_MISSING", { what: "no checkpoint.db", place: { file: folder } });
  for (const each of filesOf(file)) if (existsSync(each)) assertWritable(each);
  assertFilled(file);
  return file;
}

/** Not read-only: such a connection would leave the log and its index behind, which may then belong to another user. */
function openStored(file: string): DatabaseSync {
  try {
    const db = new DatabaseSync(file, { timeout: lockWaitMs });
    db.exec("PRAGMA wal_autocheckpoint = 0");
    return db;
  } catch (error) {
    throw checkpointFault(error, file);
  }
}

/**
 * Opens the store in `folder`, or creates it, lets `fill` add to it, and closes it. The file is complete then,
 * with the tables of this version. Returns its path.
 */
export async function fillStore(folder: string, fill?: (to: Checkpoint) => Promise<void>): Promise<string> {
  const to = new Checkpoint(new SqliteJournal({ folder }));
  try {
    await fill?.(to);
  } finally {
    await to.close(false);
  }
  return join(folder, "checkpoint.db");
}

/**
 * Completes a backup: checks every page, and records the note and a power loss as the end. A runtime that continues from the file
 * therefore flags everything that may have been delivered since. The file then needs no write-ahead log. Returns its state.
 * @throws WatchfireError WF_BACKUP_UNREADABLE if the copy is damaged, as the store is then
 */
export function sealBackup(file: string, { takenAt, place, version }: BackupNote): JournalState {
  let state: JournalState;
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    const [check] = db.prepare("PRAGMA quick_check(1)").all();
    if (check?.quick_check !== "ok") throw unreadable(file, `SQLite says: ${String(check?.quick_check)}`);
    db.exec(table);
    db.prepare("INSERT OR REPLACE INTO backup VALUES (1, ?, ?, ?)").run(takenAt, place, version);
    db.prepare("UPDATE meta SET clean = 0, boot = ''").run();
    db.exec("PRAGMA journal_mode = DELETE");
    state = readState(db);
  } finally {
    db.close();
  }
  chmodSync(file, 0o600);
  sync(file);
  return state;
}

/** Reads a backup. @throws WatchfireError WF_BACKUP_UNREADABLE, WF_CHECKPOINT_NEWER_SCHEMA */
export function readBackup(file: string): Backup {
  if (!existsSync(file)) throw unreadable(file, "there is no such file");
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    assertOurs(db, file);
    const { taken_at: takenAt, place, version } = noteSchema.parse(db.prepare("SELECT * FROM backup").get());
    const [check] = db.prepare("PRAGMA quick_check(1)").all();
    if (check?.quick_check !== "ok") throw unreadable(file, `SQLite says: ${String(check?.quick_check)}`);
    return { note: { takenAt, place, version }, state: readState(db) };
  } catch (error) {
    if (error instanceof WatchfireError && error.code !== "WF_CHECKPOINT_CORRUPT") throw error;
    throw unreadable(file, error instanceof WatchfireError ? error.message : systemReason(error), error);
  } finally {
    db?.close();
  }
}

/** Copies a backup to where a store is to be, durably. */
export function placeBackup(file: string, to: string): void {
  for (const left of filesOf(to)) rmSync(left, { force: true });
  copyFileSync(file, to);
  chmodSync(to, 0o600);
  sync(to);
}

const unreadable = (file: string, what: string, cause?: unknown): WatchfireError =>
  new WatchfireError("WF_BACKUP_UNREADABLE", { what, place: { file }, cause });
