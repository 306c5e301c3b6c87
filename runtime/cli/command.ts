import { type ParseArgsOptionDescriptor, parseArgs } from "node:util";
import { WatchfireError } from "../errors.ts";

/** What an option is called, takes and does. */
export interface Option {
  /** How the value is shown in the help, such as `DIR`; absent for a switch. */
  readonly value?: string;
  readonly summary: string;
  readonly default?: string;
}

/** The parsed command line of one command. */
export interface Invocation {
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly switches: ReadonlySet<string>;
  readonly operands: readonly string[];
}

/** One command of the command line; one file each. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** After the name, such as `list | show ID`; options are appended. */
  readonly operands?: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Resolves with the exit status when the command is done. */
  run(invocation: Invocation): Promise<number>;
}

/**
 * Parses what follows the command's name; unknown options are refused.
 * @throws WatchfireError WF_CLI_USAGE
 */
export function parse(command: Command, args: readonly string[]): Invocation {
  const descriptors: Record<string, ParseArgsOptionDescriptor> = {};
  for (const [name, option] of Object.entries(command.options)) {
    descriptors[name] = { type: option.value ? "string" : "boolean" };
  }
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: descriptors,
      allowPositionals: command.operands !== undefined,
    });
    const options: Record<string, string | undefined> = {};
    const switches = new Set<string>();
    for (const [name, option] of Object.entries(command.options)) {
      const given = values[name];
      if (given === true) switches.add(name);
      else if (option.value) options[name] = typeof given === "string" ? given : option.default;
    }
    return { options, switches, operands: positionals };
  } catch (cause) {
    const what = cause instanceof Error ? (cause.message.split(". ")[0] ?? cause.message) : String(cause);
    throw new WatchfireError("WF_CLI_USAGE", {
      what: lowerFirst(what),
      hint: `run \`watchfire ${command.name} --help\``,
      cause,
    });
  }
}

/** The help text of one command. */
export function help(command: Command): string {
  const rows = Object.entries(command.options).map(([name, option]) => {
    const left = option.value ? `--${name} ${option.value}` : `--${name}`;
    return {
      left,
      right: option.default === undefined ? option.summary : `${option.summary} (default ${option.default})`,
    };
  });
  const width = Math.max(0, ...rows.map((row) => row.left.length));
  return [
    `watchfire ${[command.name, command.operands, rows.length > 0 ? "[options]" : undefined].filter(Boolean).join(" ")}`,
    "",
    `  ${command.summary}`,
    ...(rows.length > 0 ? ["", ...rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}`)] : []),
    "",
  ].join("\n");
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
