import { frameHeaderBytes } from "./log-length.ts";

/** What the thread is asked: to copy the log. `bytes`: what of it stays on the disk. */
export interface CopyRequest {
  readonly bytes: number;
}

/** How it went. `fault`: what SQLite said, as its error had it. */
export interface CopyReply {
  /** Bytes of the log that were copied, before it began anew; left out where it did not, as somebody still reads from it. */
  readonly copied?: number;
  readonly fault?: { readonly message: string; readonly errcode?: number };
}

/** For a commit that is under way, in milliseconds. */
const lockWaitMs = 1_000;

/** A pass that took no longer, in milliseconds, found next to nothing: the last one then holds commits up no longer. */
const shortPassMs = 3;
/** On a disk where no pass is so short, commits wait after so many. */
const mostPasses = 6;

/**
 * The program of a thread that copies the log into the file, over a connection of its own. Passes beside commits leave
 * less and less to copy; the last one holds the lock, and then the log begins anew. Its first frame is synced with its
 * header, and cuts the log to its share. The thread writes that frame, of a row that comes and goes, so that no commit
 * waits for it.
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
