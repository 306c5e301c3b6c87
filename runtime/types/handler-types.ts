import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, setPriority } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { packageHint } from "./package-hint.ts";

/** Time limit of the compiler, in milliseconds. A project of hundreds of files takes seconds. */
const compileMs = 120_000;

/** Limit of the compiler's output, in bytes: the names of a project's files, and its errors. */
const outputLimit = 32 * 1024 * 1024;

/** Type errors in the functions folder, and the files that were not checked, each as a message. */
interface HandlerTypes {
  readonly faults: readonly WatchfireError[];
  readonly unchecked: readonly string[];
}

/**
 * Checks the types of a functions folder's code, by the project's own tsconfig.json and with the project's own TypeScript.
 * TypeScript is resolved from `project`, whose packages the user runs anyway, and never from the functions folder. With a signal
 * the compiler runs at the lowest priority, and ends when the signal aborts.
 * @throws WatchfireError WF_TYPES_COMPILER
 */
export async function checkTypes(
  folder: string,
  handlers: readonly string[],
  project: string,
  signal?: AbortSignal,
): Promise<HandlerTypes> {
  if (handlers.length === 0) return { faults: [], unchecked: [] };
  const compiler = compilerOf(project, folder);
  if (compiler === undefined) {
    return {
      faults: [],
      unchecked: ["types, since no TypeScript is installed here (`npm install --save-dev typescript`)"],
    };
  }
  const settings = settingsAbove(resolve(folder));
  if (settings === undefined)
    return { faults: [], unchecked: [`types, since there is no tsconfig.json for ${folder}`] };
  const words = [compiler, "-p", settings, "--noEmit", "--pretty", "false", "--listFiles"];
  const lines = (await output(words, project, signal)).split("\n");
  const root = `${resolve(folder)}${sep}`;
  const said = diagnostics(lines);
  const faults = said.filter(({ file }) => resolve(project, file).startsWith(root));
  const files = new Set(lines.map((line) => resolve(project, line)));
  const left = handlers.filter((handler) => !files.has(resolve(handler)));
  const general = lines.find((line) => /^error TS\d+: /.test(line));
  const where = relative(project, settings);
  const unchecked =
    general === undefined
      ? left.map((handler) => `types of ${handler}, since ${where} leaves it out`)
      : [`types, since ${where} cannot be used: ${general.replace(/^error /, "")}`];
  return {
    faults: withoutConsequences(faults).map(
      ({ what, file, line, column }) =>
        new WatchfireError("WF_TYPES_HANDLER", { what, place: { file, line, column }, hint: hintOf(what) }),
    ),
    unchecked,
  };
}

const packageSchema = z.looseObject({ bin: z.looseObject({ tsc: z.string() }) });

/** Returns the program of the project's TypeScript; `undefined` if it has no TypeScript. */
function compilerOf(project: string, functions: string): string | undefined {
  try {
    const manifest = createRequire(join(resolve(project), "package.json")).resolve("typescript/package.json");
    if (manifest.startsWith(`${resolve(functions)}${sep}`)) return undefined;
    const { bin } = packageSchema.parse(JSON.parse(readFileSync(manifest, "utf8")));
    return join(dirname(manifest), bin.tsc);
  } catch {
    return undefined;
  }
}

function settingsAbove(folder: string): string | undefined {
  const file = join(folder, "tsconfig.json");
  if (existsSync(file)) return file;
  const above = dirname(folder);
  return above === folder ? undefined : settingsAbove(above);
}

/** Returns the compiler's output, whether or not it finds errors. */
function output(words: readonly string[], cwd: string, signal: AbortSignal | undefined): Promise<string> {
  const options = { cwd, timeout: compileMs, maxBuffer: outputLimit, ...(signal && { signal }) };
  return new Promise((done, fail) => {
    const compiler = execFile(process.execPath, words, options, (error, stdout) => {
      // Errors in code result in an exit status; any other failure means that the compiler did not finish.
      if (error && typeof error.code !== "number") {
        fail(
          new WatchfireError("WF_TYPES_COMPILER", {
            what: error.killed ? "it took too long" : error.message,
            cause: error,
          }),
        );
      } else done(stdout);
    });
    if (signal && compiler.pid !== undefined) yieldAlways(compiler.pid);
  });
}

/** Sets the lowest priority, so that other work comes first. */
function yieldAlways(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // the process has ended already
  }
}

interface Diagnostic {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly what: string;
}

/** Groups lines to errors: an error's first line and the indented lines below it, of which the last has the reason. */
function diagnostics(lines: readonly string[]): Diagnostic[] {
  const found: Diagnostic[] = [];
  for (const [index, text] of lines.entries()) {
    const match = /^(.+)\((\d+),(\d+)\): error (TS\d+: .*)$/.exec(text);
    if (!match) continue;
    const [, file = "", line, column, head = ""] = match;
    const below = lines.slice(index + 1);
    const end = below.findIndex((each) => !each.startsWith(" "));
    const reason = below.slice(0, end < 0 ? below.length : end).at(-1);
    const what = [head, reason?.trim()].filter((each) => each !== undefined).map((each) => each.replace(/\.$/, ""));
    found.push({ file, line: Number(line), column: Number(column), what: what.join(": ") });
  }
  return found;
}

/** An error about a package that was not found. Only its imports have errors in that case. */
const missingPackage = /^TS2307: Cannot find module '((?:@[^/':]+\/)?[^./':][^/':]*)['/]/;

/** Reduces a file that imports missing packages to one error per package: its other errors may be consequences. */
function withoutConsequences(found: readonly Diagnostic[]): readonly Diagnostic[] {
  const packageOf = ({ what }: Diagnostic) => missingPackage.exec(what)?.[1];
  const incomplete = new Set(found.filter(packageOf).map(({ file }) => file));
  const reported = new Set<string>();
  return found.filter((each) => {
    if (!incomplete.has(each.file)) return true;
    const name = packageOf(each);
    const once = `${each.file}\n${name}`;
    if (name === undefined || reported.has(once)) return false;
    reported.add(once);
    return true;
  });
}

/** Returns `undefined` for the hint of the code. */
function hintOf(what: string): string | undefined {
  if (/^TS2307: Cannot find module '[^']*\/function\.d\.ts'/.test(what))
    return "`watchfire types` writes it from the function.yaml of the same folder";
  const name = missingPackage.exec(what)?.[1];
  return name === undefined ? undefined : packageHint(name);
}
