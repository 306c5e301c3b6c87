import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { systemReason } from "../base/wording.ts";

/**
 * Creates the data folder if it is missing, and makes git ignore all of it; an existing folder is left unchanged.
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
