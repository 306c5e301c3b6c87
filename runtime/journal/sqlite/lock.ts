import { chmodSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkpointFault, isBusy } from "./fault.ts";
import { assertWritable } from "./files.ts";

/**
 * A folder's lock, held from its making to `release`: an empty database that is locked as a whole. The kernel frees it however
 * the process dies. By default it is the one on the folder's positions.
 * @throws what SQLite says, that it is busy where another process, or another part of this one, holds it
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
