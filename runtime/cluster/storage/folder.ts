import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Creates a folder and its missing parents; an existing folder is not changed. Node's own `recursive` never returns for a path
 * below /proc (Node 24.21).
 * @param mode of the folders that are created
 * @throws the file system's error, with its code; ENOTDIR if a file is in the way
 */
export function makeFolder(folder: string, mode = 0o777): void {
  const path = resolve(folder);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found) throw Object.assign(new Error(`ENOTDIR: not a directory, ${path}`), { code: "ENOTDIR" });
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
