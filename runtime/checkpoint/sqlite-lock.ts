import { chmodSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/**
 * A folder's lock, held from its making to `release`: an empty database that is locked as a whole. The kernel frees it however
 * the process dies. By default it is the one on the folder's positions.
 * @throws what SQLite says, that it is busy where another process, or another part of this one, holds it
 */
export class SqliteLock {
  private readonly db: DatabaseSync;

  constructor(folder: string, name = "checkpoint.lock") {
    const file = join(folder, name);
    this.db = new DatabaseSync(file, { timeout: 0 });
    try {
      chmodSync(file, 0o600);
      this.db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    } catch (error) {
      this.db.close();
      throw error;
    }
  }

  release(): void {
    if (this.db.isOpen) this.db.close();
  }
}
