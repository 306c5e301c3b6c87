import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { systemReason } from "../base/wording.ts";

/**
 * Makes the data folder where there is none, and has git ignore all of it; a folder that is there is left as it is.
 * @throws WatchfireError WF_DEV_CLUSTER_FILES
 */
export function makeDataFolder(folder: string): void {
  if (existsSync(folder)) return;
  try {
    makeFolder(folder);
    writeFileSync(join(folder, ".gitignore"), "*\n");
  } catch (cause) {
    throw new WatchfireError("WF_DEV_CLUSTER_FILES", { what: systemReason(cause), place: { file: folder }, cause });
  }
}
