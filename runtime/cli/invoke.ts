import { WatchfireError } from "../base/errors.ts";
import { type Command, help, parse } from "./command.ts";

/**
 * Runs one command on the words that follow its name, and gives the exit status. 0 is done, 1 the user's mistake, 2 the
 * system's failure, which stderr tells. `spoken`: the program and the command, as their user types them.
 */
export async function invoke(
  command: Command,
  words: readonly string[],
  spoken = `watchfire ${command.name}`,
): Promise<number> {
  try {
    // Amid the words of another program, it is that one's.
    const own = command.passes && words.length > 1 ? [] : words;
    if (own.includes("--help") || own.includes("-h")) {
      process.stdout.write(help(command));
      return 0;
    }
    return await command.run(parse(command, words));
  } catch (error) {
    return report(withHelpOf(spoken, error));
  }
}

/** A mistake in a command's line leads to that command's help, unless something better is known. */
function withHelpOf(spoken: string, error: unknown): unknown {
  if (!(error instanceof WatchfireError) || error.code !== "WF_CLI_USAGE" || error.detail.hint) return error;
  return new WatchfireError(error.code, { ...error.detail, hint: `run \`${spoken} --help\`` });
}

/** Tells of a failure on stderr, and gives the exit status for it. */
export function report(error: unknown): number {
  if (error instanceof WatchfireError) {
    process.stderr.write(`${error.message}\n`);
    return error.blame === "user" ? 1 : 2;
  }
  const fault = new WatchfireError("WF_RUNTIME_INTERNAL", {
    what: error instanceof Error ? error.message : String(error),
  });
  process.stderr.write(`${fault.message}\n${error instanceof Error ? `${error.stack}\n` : ""}`);
  return 2;
}
