import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { checkpointFault } from "./sqlite-fault.ts";

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
