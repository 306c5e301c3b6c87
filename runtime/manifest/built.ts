import { existsSync } from "node:fs";
import { join } from "node:path";

/** What makes a folder one of built functions: the names and hashes of all that is in it. */
export const lockName = "watchfire.lock.json";

/** Beside the lock, where it was signed. */
export const lockSignatureName = "watchfire.lock.sig";

/** Whether a folder holds what `watchfire build` wrote: manifests, and scripts in place of handlers. */
export const isBuilt = (folder: string): boolean => existsSync(join(folder, lockName));
