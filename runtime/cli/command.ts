import { parseArgs } from "node:util";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";

/** An option of a command. */
export interface Option {
  /** The value's placeholder in the help, such as `DIR`. Absent for a switch. */
  readonly value?: string;
  readonly summary: string;
  readonly default?: string;
  /** Its letter, such as `o` for `-o`. */
  readonly short?: string;
  /** The accepted values. Default: any. */
  readonly choices?: readonly string[];
  /** The option may be repeated. Its value is the list of all values, empty if it is not given. */
  readonly many?: true;
}

/** The options of one command, by name. */
type Options = Readonly<Record<string, Option>>;

/**
 * The values of the options that take one: the default if the option is not given, `undefined` without a default, and a list for
 * repeatable options.
 */
export type Values<O extends Options> = string extends keyof O
  ? Readonly<Record<string, string | readonly string[] | undefined>>
  : {
      readonly [Name in keyof O as O[Name] extends { value: string } ? Name : never]: O[Name] extends { many: true }
        ? readonly string[]
        : O[Name] extends { default: string }
          ? string
          : string | undefined;
    };

/** The parsed command line of one command. */
export interface Invocation<O extends Options = Options> {
  readonly options: Values<O>;
  /** The names of all given options and switches. */
  readonly given: ReadonlySet<string>;
  readonly operands: readonly string[];
  /** Whether kubectl started this program, as its plugin. Default false. */
  readonly isPlugin?: boolean;
}

/** A command. Each has a file. */
export interface Command<O extends Options = Options> {
  readonly name: string;
  readonly summary: string;
  /** Shown after the name, such as `list | show ID`; options are appended. */
  readonly operands?: string;
  readonly options: O;
  /** Everything after the name is passed to another program, which has its options. */
  readonly passes?: true;
  /** Runs the command. Resolves with the exit status. */
  run(invocation: Invocation<O>): Promise<number>;
}

/** Defines a command, so that the type of `run`'s options follows from `options`. */
export const command = <const O extends Options>(definition: Command<O>): Command<O> => definition;

/**
 * Parses the arguments after the command's name.
 * @throws WatchfireError WF_CLI_USAGE for an unknown option, a missing value, or unexpected operands
 */
export function parse<O extends Options>(of: Command<O>, args: readonly string[]): Invocation<O> {
  const known: Options = of.options;
  if (of.passes) return { options: {} as Values<O>, given: new Set(), operands: args };
  const types = Object.entries(known).map(([name, { value, short }]) => {
    return [name, { type: value ? "string" : "boolean", ...(short !== undefined && { short }) }];
  });
  const { tokens } = parseArgs({ args: [...args], options: Object.fromEntries(types), strict: false, tokens: true });
  const values: Record<string, string | string[]> = {};
  for (const [name, { many }] of Object.entries(known)) if (many) values[name] = [];
  const given = new Set<string>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    const option = rawName === `--${name}` || rawName === `-${found?.short}` ? found : undefined;
    if (!option) throw usage(`there is no option ${rawName}`, suggest(name, Object.keys(known)));
    if (!option.value && value !== undefined) throw usage(`${rawName} takes no value, got ${value}`);
    // The next option is not taken as a value. A folder of such a name must be given as `--functions=--odd`.
    const isMissing = value === undefined || value === "" || (!inlineValue && value.startsWith("--"));
    if (option.value && isMissing) throw usage(`${rawName} needs a value: ${option.value}`);
    if (option.choices && !option.choices.includes(value ?? "")) {
      throw usage(`${rawName} takes ${option.choices.join(" or ")}, got ${value}`);
    }
    given.add(name);
    const all = values[name];
    if (value === undefined) continue;
    if (Array.isArray(all)) all.push(value);
    else values[name] = value;
  }
  if (operands.length > 0 && of.operands === undefined) {
    throw usage(`${of.name} takes only options, got ${operands.join(" ")}`);
  }
  for (const [name, { value, default: standard }] of Object.entries(known)) {
    if (value && standard !== undefined) values[name] ??= standard;
  }
  return { options: values as Values<O>, given, operands };
}

/** Returns the options as they hold: values and defaults, and whether each switch is set. Options without a value are left out. */
export function flagsOf<O extends Options>(of: Pick<Command<O>, "options">, invocation: Invocation<O>) {
  const values = invocation.options as Readonly<Record<string, string | readonly string[] | undefined>>;
  return Object.fromEntries(
    Object.entries(of.options as Options).flatMap(([name, { value }]) => {
      const found = value === undefined ? invocation.given.has(name) : values[name];
      return found === undefined || (Array.isArray(found) && found.length === 0) ? [] : [[name, found] as const];
    }),
  );
}

function usage(what: string, meant?: string): WatchfireError {
  return new WatchfireError("WF_CLI_USAGE", { what, ...(meant !== undefined && { hint: `did you mean --${meant}?` }) });
}

/** Returns the help text of one command. `program`: the words before its name. */
export function help(of: Command, program = "watchfire"): string {
  const rows = Object.entries(of.options).map(([name, option]) => {
    const names = option.short === undefined ? `--${name}` : `-${option.short}, --${name}`;
    const left = option.value ? `${names} ${option.value}` : names;
    const notes = [option.default && `default ${option.default}`, option.many && "may be given again"].filter(Boolean);
    return { left, right: notes.length === 0 ? option.summary : `${option.summary} (${notes.join(", ")})` };
  });
  const width = Math.max(0, ...rows.map((row) => row.left.length));
  return [
    `${program} ${[of.name, of.operands, rows.length > 0 ? "[options]" : undefined].filter(Boolean).join(" ")}`,
    "",
    `  ${of.summary}`,
    ...(rows.length > 0 ? ["", ...rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}`)] : []),
    "",
  ].join("\n");
}
