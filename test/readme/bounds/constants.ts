import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";

const runtime = join(import.meta.dirname, "../../../runtime");

/** A constant of the runtime's code. */
export interface Constant {
  /** Path below `runtime/`. */
  readonly file: string;
  readonly name: string;
}

/**
 * Folders of commands, and of the parts of `watchfire dev` that a runtime does not have. They end with the command, and no pod
 * contains them.
 */
const ofCommands = /^(?:bundle|cli|cluster|dev|docs|node_modules|rbac|types)\//;

/**
 * Names of constants that limit something. Milliseconds are left out: a queue that waits for a time has another limit.
 */
const isBound = (name: string): boolean =>
  /^(?:most|max|longest|deepest)(?=[A-Z]|$)|(?:Limit|AtOnce|Room)$/.test(name) && !name.endsWith("Ms");

/** The expression of a constant in the file; `undefined` if the file has no constant of that name. */
function expressionOf({ file, name }: Constant): string | undefined {
  const text = readFileSync(join(runtime, file), "utf8");
  return new RegExp(`^(?:export )?const ${name}(?:: \\w+)? = ([^;]+);`, "m").exec(text)?.[1]?.replace(/ as const$/, "");
}

const unit = /^(?:mebi|mebibyte)$/;

/** The constant's value, a number or a flat object of numbers. Throws if the code has no such constant. */
function codeValue(constant: Constant): unknown {
  const expression = expressionOf(constant);
  if (expression === undefined) throw new Error(`runtime/${constant.file} has no constant ${constant.name}`);
  const names = [...new Set(expression.match(/\b[A-Za-z]\w*\b(?!:)/g) ?? [])];
  const others = names.map((name) => [name, unit.test(name) ? 2 ** 20 : codeValue({ ...constant, name })]);
  return runInNewContext(`(${expression})`, Object.fromEntries(others));
}

/** The constant's number, or its member `key`. Throws if the code does not have it. */
export function numberOf(constant: Constant, key?: string): number {
  const value = codeValue(constant);
  const found = key === undefined ? value : (value as Readonly<Record<string, unknown>>)[key];
  if (typeof found !== "number") throw new Error(`${constant.name} of runtime/${constant.file} is no number`);
  return found;
}

/** Every constant of the runtime whose name is that of a limit, in the order of the files. */
export function boundsOfCode(): readonly Constant[] {
  const files = globSync("**/*.ts", { cwd: runtime, exclude: (name) => name === "node_modules" }).toSorted();
  return files
    .filter((file) => !ofCommands.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(runtime, file), "utf8");
      const found = text.matchAll(/^(?:export )?const (\w+)(?:: \w+)? = [^;=]*\d[^;=]*;/gm);
      return [...found].flatMap(([, name = ""]) => (isBound(name) ? { file, name } : []));
    });
}
