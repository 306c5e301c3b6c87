import type { DatabaseSync } from "node:sqlite";

/**
 * Header size of each page in the log. SQLite's file format, "The Write-Ahead Log": a frame is a header of 24 bytes and a page.
 */
export const frameHeaderBytes = 24;

/** The first version of SQLite that counts the log without copying it. Earlier ones copy the log at the same statement. */
const countsFrom = [3, 51] as const;

/**
 * Returns a function that returns the size of the write-ahead log in bytes, as counted by SQLite, in 3 us. It returns `undefined`
 * if SQLite is too old to count, within a transaction of this connection, and after the connection is closed.
 */
export function logLengthOf(db: DatabaseSync): () => number | undefined {
  const [major = 0, minor = 0] = String(db.prepare("SELECT sqlite_version() AS version").get()?.version)
    .split(".")
    .map(Number);
  if (major < countsFrom[0] || (major === countsFrom[0] && minor < countsFrom[1])) return () => undefined;
  const pageBytes = Number(db.prepare("PRAGMA page_size").get()?.page_size);
  const count = db.prepare("PRAGMA wal_checkpoint(NOOP)");
  return () => {
    try {
      const frames = Number(count.get()?.log);
      return frames >= 0 ? frames * (pageBytes + frameHeaderBytes) : undefined;
    } catch {
      return undefined;
    }
  };
}

/** Request to the thread to copy the log. `bytes`: how much of the log's file stays on the disk. */
export interface CopyRequest {
  readonly bytes: number;
}

/** Result of a request. `fault`: SQLite's error. */
export interface CopyReply {
  /**
   * Bytes of the log that were copied before it started over. `undefined` if it did not start over, because it still has a
   * reader.
   */
  readonly copied?: number;
  readonly fault?: { readonly message: string; readonly errcode?: number };
}

/** How long to wait for a commit under way, in milliseconds. */
const lockWaitMs = 1_000;

/** A pass this short, in milliseconds, copied next to nothing, so that the final pass does not hold up commits for longer. */
const shortPassMs = 3;
/** Maximum number of passes before the final one, for disks where no pass is that short. */
const mostPasses = 6;

/**
 * Program of the thread that copies the log into the file, with a separate connection. Passes that run while commits continue leave
 * less and less to copy. The final pass holds the lock, and then the log starts over. SQLite syncs the first frame of the new log
 * together with its header, and truncates the log to its share. The thread writes that frame, with a row that it inserts and
 * deletes, so that no commit waits for the sync.
 */
export const copyProgram = `
const { DatabaseSync } = require("node:sqlite");
const { parentPort, workerData } = require("node:worker_threads");

let db;

function copy(bytes) {
  if (!db) {
    db = new DatabaseSync(workerData.file, { timeout: ${lockWaitMs} });
    db.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -256");
  }
  db.exec("PRAGMA journal_size_limit = " + bytes);
  for (let pass = 1; pass <= ${mostPasses}; pass++) {
    const from = performance.now();
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    if (performance.now() - from <= ${shortPassMs}) break;
  }
  const { busy, log } = db.prepare("PRAGMA wal_checkpoint(RESTART)").get();
  if (busy) return {};
  db.exec("BEGIN IMMEDIATE; INSERT INTO journal VALUES (-1, ''); DELETE FROM journal WHERE id = -1; COMMIT");
  return { copied: log * (db.prepare("PRAGMA page_size").get().page_size + ${frameHeaderBytes}) };
}

parentPort.on("message", (request) => {
  if (!request) {
    db?.close();
    parentPort.close();
    return;
  }
  let reply;
  try {
    reply = copy(request.bytes);
  } catch ({ message, errcode }) {
    db?.close();
    db = undefined;
    reply = { fault: { message, errcode } };
  }
  parentPort.postMessage(reply);
});
`;
