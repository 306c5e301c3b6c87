import { resolve } from "node:path";
import type { Environment } from "../base/config.ts";
import type { DeadLetterCommand } from "../engine/commit/dead-letter-command.ts";
import { data } from "./options.ts";
import { shellWord } from "./shell-word.ts";

/** The commands of a runtime's log for its dead letters: they find its data folder from another terminal as well. */
export function letterCommandFor(folder: string, { dataFolder }: Environment): DeadLetterCommand {
  const at = folder === data.default && dataFolder === undefined ? "" : ` --data ${shellWord(resolve(folder))}`;
  return (action, id) => `watchfire dead-letters ${action} ${id}${at}`;
}
