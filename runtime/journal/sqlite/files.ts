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

/** Returns the files of a database: the file, its write-ahead log, which may hold commits, and the index of that log. */
export const filesOf = (file: string): readonly string[] => [file, `${file}-wal`, `${file}-shm`];

/**
 * Checks that the file can be written, before SQLite opens it. SQLite opens an unwritable file for reading, and then its lock
 * locks nothing. Files that it creates next to it would get the file's mode, and would block the next start even after that is
 * fixed.
 * @throws WatchfireError WF_CHECKPOINT_READ_ONLY with the name of the file, or of the folder if the file does not exist yet
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
 * Atomically creates a database without tables, readable by its owner only. SQLite itself would first create an empty file, which
 * could not be distinguished from one that was truncated. The log and its index get the file's mode.
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
    // Some folders cannot be read or synced. A power loss may then remove the file, which leaves the store as new.
  }
}

/** Resolves symbolic links, also to a target that does not exist yet. SQLite keeps the log next to the target. */
export function fileBehind(path: string, links = 40): string {
  if (links === 0 || !isLink(path)) return path;
  return fileBehind(resolve(realpathSync(dirname(path)), readlinkSync(path)), links - 1);
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false; // opening the file reports why
  }
}

/**
 * Refuses an empty file, and a log without its file. SQLite would take an empty file for a new one and delete its log, and it
 * would read a log without a file into a new file.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT
 */
export function assertFilled(file: string): void {
  const log = `${file}-wal`;
  const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
  if (size(file) === 0) throw damaged("it is empty, and has no checkpoints left", file);
  if (size(file) === undefined && size(log)) throw damaged("it is the log of a file that is not there", log);
}

const damaged = (what: string, file: string) => new WatchfireError("WF_CHECKPOINT_CORRUPT", { what, place: { file } });
