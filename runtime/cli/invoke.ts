import { WatchfireError } from "../base/errors.ts";
import { type Command, help, parse } from "./command.ts";

/**
 * Runs one command with the arguments after its name. Returns the exit status: 0 for success, 1 for the user's mistake, 2 for a
 * failure of the system. Failures are written to stderr. `program`: the words before the command, for its help. `spoken`: the
 * program and the command as the user types them.
 */
export async function invoke(
  command: Command,
  words: readonly string[],
  program = "watchfire",
  spoken = `${program} ${command.name}`,
): Promise<number> {
  try {
    // `--help` among the arguments of another program belongs to that program.
    const own = command.passes && words.length > 1 ? [] : words;
    if (own.includes("--help") || own.includes("-h")) {
      process.stdout.write(help(command, program));
      return 0;
    }
    return await command.run({ ...parse(command, words), isPlugin: program.startsWith("kubectl ") });
  } catch (error) {
    return report(withHelpOf(spoken, error));
  }
}

/** Adds a hint about the command's help to a usage error, unless it has a better hint. */
function withHelpOf(spoken: string, error: unknown): unknown {
  if (!(error instanceof WatchfireError) || error.code !== "WF_CLI_USAGE" || error.detail.hint) return error;
  return new WatchfireError(error.code, { ...error.detail, hint: `run \`${spoken} --help\`` });
}

/** Writes a failure to stderr, and returns its exit status. */
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
