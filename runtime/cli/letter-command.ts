import { resolve } from "node:path";
import type { Environment } from "../base/config.ts";
import type { DeadLetterCommand } from "../engine/commit/commits.ts";
import { data } from "./options.ts";
import { shellWord } from "./shell-word.ts";

/**
 * Returns the commands for dead letters that the log shows. They name the data folder, so they work in another terminal as well.
 */
export function letterCommandFor(folder: string, { dataFolder }: Environment): DeadLetterCommand {
  const at = folder === data.default && dataFolder === undefined ? "" : ` --data ${shellWord(resolve(folder))}`;
  return (action, id) => `watchfire dead-letters ${action} ${id}${at}`;
}
