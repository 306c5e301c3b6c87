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

/** A program to run with Node. */
export interface Program {
  /** Node's flags. Default: empty. */
  readonly flags?: readonly string[];
  /** The program's file, or `-` for standard input, followed by its arguments. */
  readonly args: readonly string[];
  /** Text written to its standard input, which is then closed. */
  readonly input?: () => Promise<string>;
}

/** Options of an executor. */
export interface ExecutorOptions {
  /**
   * Runs V8 without a compiler for machine code: loops take five times as long, but compiler bugs cannot be exploited. Default
   * false.
   */
  readonly jitless?: boolean;
}

/**
 * The executor's program, which communicates over descriptor 3. In a checkout it is TypeScript, bundled and passed as a script on
 * standard input. In an image it is a JavaScript file.
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

/** Restrictions that this process can put on the executors it starts. */
export function ownConfinement(): Confinement {
  confinement ??= new Confinement([process.execPath, ...nativeParts().map((part) => resolve(part, "package.json"))]);
  return confinement;
}

/** Rights of executors that are children of this process. */
export const childRights = ({ jitless = false }: ExecutorOptions = {}): ExecutorRights => ({
  ...ownConfinement().rights,
  jit: !jitless,
});

/**
 * The whole environment of an executor. The settings are glibc's, as in the image: without them it keeps the memory of closed
 * isolates, 30 MB after 50 of them.
 */
const executorVariables = { TZ: "UTC", MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" };

/**
 * Starts an executor without the starter's environment, working folder or files. It has its own name in `ps`, and as few rights
 * as the platform allows.
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
    env: executorVariables,
    argv0: "watchfire executor",
    ...walls.user,
    // Ctrl-C signals a terminal's whole process group and would end an executor that is still starting.
    detached: true,
    // Nothing is written to the last pipe. It is held open so that it closes when this process ends.
    stdio: [input ? "pipe" : "ignore", "ignore", "pipe", descriptor, ...(isWatchedByThread ? (["pipe"] as const) : [])],
  });
  walls.lower(child);
  const { stdin } = child;
  // If the executor ends before it has read its program, its `exit` event reports that.
  stdin?.on("error", () => undefined);
  input?.().then(
    (script) => stdin?.end(script),
    () => child.kill("SIGKILL"),
  );
  return child;
}

/**
 * Flags of Node's permission model, a second barrier: the executor may read its own code and nothing else, and start no process.
 */
const readable = (paths: readonly string[]): string[] => paths.map((path) => `--allow-fs-read=${path}`);

/** Read by node-gyp-build to tell musl from glibc. */
const muslMark = "/etc/alpine-release";

/** The folders of isolated-vm and of node-gyp-build, which loads its native code. */
function nativeParts(): readonly [isolatedVm: string, loader: string] {
  const isolatedVm = folderOf("isolated-vm", import.meta.url);
  return [isolatedVm, folderOf("node-gyp-build", `${isolatedVm}/package.json`)];
}

/**
 * All paths at which Node looks for the two packages. A package manager may link a package from another folder, or install one
 * that shadows those above it.
 */
function lookedAt(program: string, isolatedVm: string): string[] {
  const places = [...candidates("isolated-vm", program), ...candidates("node-gyp-build", isolatedVm)];
  // Node treats a path that does not exist as a file, so the files below it need a rule too.
  return places.flatMap((place) => [place, `${place}/*`]);
}

const folderOf = (name: string, from: string): string =>
  dirname(realpathSync(createRequire(from).resolve(`${name}/package.json`)));

/** The paths where a package imported by a file in `folder` may be, by Node's resolution rule: in each folder above it. */
function candidates(name: string, folder: string): string[] {
  const place = resolve(folder, "node_modules", name);
  const above = dirname(folder);
  return above === folder ? [place] : [place, ...candidates(name, above)];
}
