import { type ChildProcess, spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, resolve } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { Confinement } from "./confinement.ts";
import { executorScript } from "./executor-script.ts";
import { lifelineArgument, requiredFlags } from "./requirements.ts";
import type { ExecutorRights } from "./rights.ts";

/** A program for Node. */
export interface Program {
  /** Node's flags. Default: none. */
  readonly flags?: readonly string[];
  /** The program's file or `-`, and what it is told. */
  readonly args: readonly string[];
  /** What it reads from its standard input, which it finds at its end then. */
  readonly input?: () => Promise<string>;
}

/** What whoever runs executors may choose. */
export interface ExecutorOptions {
  /** V8 compiles no machine code: loops take five times as long, and a fault of its compilers harms nobody. Default false. */
  readonly jitless?: boolean;
}

/**
 * The executor's program: it speaks over descriptor 3. In a checkout it is TypeScript, and handed over as a script; in an
 * image it is a file of JavaScript already.
 */
export function executorProgram({ jitless = false }: ExecutorOptions = {}): Program & Required<Pick<Program, "flags">> {
  const permitted = ["--allow-addons", "--disable-sigusr1", ...(jitless ? ["--jitless"] : [])];
  const flags = [...requiredFlags, ...permitted];
  const type = extname(import.meta.url);
  const main = fileURLToPath(new URL(`./executor/main${type}`, import.meta.url));
  if (type === ".ts") {
    return {
      flags: [...flags, ...readable([...nativeParts(), muslMark]), "--input-type=module"],
      args: ["-"],
      input: () => executorScript(main),
    };
  }
  const own = resolve(dirname(main), "..");
  const parts = nativeParts();
  return {
    flags: [
      ...flags,
      ...readable([own, resolve(own, "../package.json"), ...parts, ...lookedAt(dirname(main), parts[0]), muslMark]),
    ],
    args: [main],
  };
}

let confinement: Confinement | undefined;

/** What this process can take from the executors that it starts. */
export function ownConfinement(): Confinement {
  confinement ??= new Confinement([process.execPath, ...nativeParts().map((part) => resolve(part, "package.json"))]);
  return confinement;
}

/** What executors may do that are children of this process. */
export const childRights = ({ jitless = false }: ExecutorOptions = {}): ExecutorRights => ({
  ...ownConfinement().rights,
  jit: !jitless,
});

/**
 * Starts an executor with nothing of the starter's environment, folder or files. It has a name of its own in `ps`, and
 * less rights, as far as the platform gives that.
 */
export function spawnExecutor(
  { flags = [], args, input }: Program,
  descriptor: "pipe" | Duplex,
  walls: Confinement = ownConfinement(),
): ChildProcess {
  const isWatchedByThread = walls.rights.endsWithStarter === "thread";
  const [program = process.execPath, ...rest] = [
    ...walls.prefix,
    process.execPath,
    ...flags,
    ...(isWatchedByThread ? ["--allow-worker"] : []),
    ...args,
    ...(isWatchedByThread ? [lifelineArgument] : []),
  ];
  const child = spawn(program, rest, {
    cwd: "/",
    env: { TZ: "UTC" },
    argv0: "watchfire executor",
    ...walls.user,
    // Ctrl-C reaches a terminal's whole group: an executor that is still starting would end by it.
    detached: true,
    // The last one is held open and never written to: its end is this process' end.
    stdio: [input ? "pipe" : "ignore", "ignore", "pipe", descriptor, ...(isWatchedByThread ? (["pipe"] as const) : [])],
  });
  walls.lower(child);
  const { stdin } = child;
  // One that is gone before it has read its program says so by its exit.
  stdin?.on("error", () => undefined);
  input?.().then(
    (script) => stdin?.end(script),
    () => child.kill("SIGKILL"),
  );
  return child;
}

/** Node's own permission model as a further wall: the executor may read its code and nothing else, and start nothing. */
const readable = (paths: readonly string[]): string[] => paths.map((path) => `--allow-fs-read=${path}`);

/** What the loader of native code looks at to tell musl from glibc. */
const muslMark = "/etc/alpine-release";

/** The folders of isolated-vm, and of the loader of its native code. */
function nativeParts(): readonly [isolatedVm: string, loader: string] {
  const isolatedVm = folderOf("isolated-vm", import.meta.url);
  return [isolatedVm, folderOf("node-gyp-build", `${isolatedVm}/package.json`)];
}

/**
 * The places in which Node looks for them: a package manager may link a package from another folder, or nest one that hides
 * those above it.
 */
function lookedAt(program: string, isolatedVm: string): string[] {
  const places = [...candidates("isolated-vm", program), ...candidates("node-gyp-build", isolatedVm)];
  // Node takes a path that does not exist for a file, and looks for one below it.
  return places.flatMap((place) => [place, `${place}/*`]);
}

const folderOf = (name: string, from: string): string =>
  dirname(realpathSync(createRequire(from).resolve(`${name}/package.json`)));

/** The places of a package that a file in `folder` imports, by Node's rule: in each folder above it. */
function candidates(name: string, folder: string): string[] {
  const place = resolve(folder, "node_modules", name);
  const above = dirname(folder);
  return above === folder ? [place] : [place, ...candidates(name, above)];
}
