import { chmodSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkpointFault, isBusy } from "./fault.ts";
import { assertWritable } from "./files.ts";

/**
 * A folder's lock, held from construction to `release`: an empty database that is locked as a whole. The kernel frees the lock
 * however the process dies. `name`: the lock's file; default: the lock of the folder's checkpoints.
 * @throws SQLite's busy error if another process, or another part of this one, holds the lock
 * @throws WatchfireError WF_CHECKPOINT_READ_ONLY, or another that names the lock's file
 */
export class SqliteLock {
  private readonly db: DatabaseSync;

  constructor(folder: string, name = "checkpoint.lock") {
    const file = join(folder, name);
    assertWritable(file);
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(file, { timeout: 0 });
      chmodSync(file, 0o600);
      db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      this.db = db;
    } catch (error) {
      db?.close();
      throw isBusy(error) ? error : checkpointFault(error, file);
    }
  }

  release(): void {
    if (this.db.isOpen) this.db.close();
  }
}
