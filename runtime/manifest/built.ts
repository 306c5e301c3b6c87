import { existsSync } from "node:fs";
import { join } from "node:path";

/** File that marks a folder of built functions: the names and hashes of everything in it. */
export const lockName = "watchfire.lock.json";

/** Signature of the lock, in the same folder, if it was signed. */
export const lockSignatureName = "watchfire.lock.sig";

/** Whether `watchfire build` wrote a folder: manifests, with scripts in place of handlers. */
export const isBuilt = (folder: string): boolean => existsSync(join(folder, lockName));
