import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { WatchfireError } from "../../base/errors.ts";
import { sync } from "../../base/folder.ts";
import { checkpointFault } from "./fault.ts";

/** A database's own file, its write-ahead log, which may hold commits, and the index of that. */
export const filesOf = (file: string): readonly string[] => [file, `${file}-wal`, `${file}-shm`];

/**
 * Asked before SQLite opens the file. Where it may not write, it opens for reading, and holds no lock. What it makes beside
 * the file then has the file's mode, and would keep the next start from writing, whatever had been mended.
 * @throws WatchfireError WF_CHECKPOINT_READ_ONLY that names the file, or the folder in which it is still to be made
 */
export function assertWritable(file: string): void {
  const { R_OK, W_OK, X_OK } = constants;
  const [at, mode] = existsSync(file) ? [file, R_OK | W_OK] : [dirname(file), W_OK | X_OK];
  try {
    accessSync(at, mode);
  } catch (error) {
    throw checkpointFault(error, at);
  }
}

/**
 * Makes a database without tables, whole or not at all, which its owner alone may read. SQLite alone makes a file of no bytes
 * first: one that was cut to nothing could not be told from a new one. The log and its index come in the file's mode.
 * @param pragmas of the file, which cannot be changed later
 */
export function makeDatabase(file: string, pragmas: string): void {
  const made = `${file}.new`;
  for (const left of filesOf(made)) rmSync(left, { force: true });
  const db = new DatabaseSync(made);
  try {
    // Synced once, below.
    db.exec(`PRAGMA synchronous = OFF; ${pragmas}; PRAGMA journal_mode = WAL`);
    chmodSync(made, 0o600);
  } finally {
    db.close();
  }
  sync(made);
  renameSync(made, file);
  try {
    sync(dirname(file));
  } catch {
    // Not each folder can be read or synced. A power loss then may leave no file, which is as new.
  }
}

/** Where a link leads, also to what is still to be made. SQLite keeps the log beside that. */
export function fileBehind(path: string, links = 40): string {
  if (links === 0 || !isLink(path)) return path;
  return fileBehind(resolve(realpathSync(dirname(path)), readlinkSync(path)), links - 1);
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false; // whoever opens it says why
  }
}

/**
 * SQLite takes an empty file for a new one, and removes the log beside it. The log of a file that is gone would be read into
 * whatever takes its place.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT
 */
export function assertFilled(file: string): void {
  const log = `${file}-wal`;
  const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
  if (size(file) === 0) throw damaged("it is empty, and has no positions left", file);
  if (size(file) === undefined && size(log)) throw damaged("it is the log of a file that is not there", log);
}

const damaged = (what: string, file: string) => new WatchfireError("WF_CHECKPOINT_CORRUPT", { what, place: { file } });
