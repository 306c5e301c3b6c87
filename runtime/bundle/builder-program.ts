import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildLimit, memoryLimit } from "./limits.ts";
import type { Project } from "./project.ts";
import { isBelow } from "./sources.ts";

/** The two processes of a builder: Node with the builder's program, and the esbuild process that it uses. */
interface BuilderProcesses {
  /** Communicates over descriptor 3. */
  readonly node: ChildProcess;
  readonly esbuild: ChildProcess;
}

/**
 * esbuild is a program in Go, whose garbage collector would run several times in a small build, on every core. So it is limited
 * to its builder's share of the cores, and may use more memory before it collects. With much memory in use it collects as often
 * as necessary.
 */
const goSettings = {
  GOMAXPROCS: `${Math.max(1, Math.floor(availableParallelism() / buildLimit))}`,
  GOGC: "400",
  GOMEMLIMIT: `${memoryLimit / 2}`,
};

/** Otherwise V8 compiles and collects on other threads as well: a start of 1,000 functions then takes a twentieth more CPU. */
const nodeFlags = ["--single-threaded", "--permission"];

let script: Promise<string> | undefined;

/** Starts a builder for a project, without the runtime's environment, credentials and rights. */
export function startBuilder(project: Project): BuilderProcesses {
  const { binary, version, folder } = installedEsbuild();
  const esbuild = inNoFolder((cwd) =>
    spawn(binary, [`--service=${version}`, "--ping"], {
      cwd,
      env: goSettings,
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
    }),
  );
  const main = fileURLToPath(new URL(`./builder/main${extname(import.meta.url)}`, import.meta.url));
  const read = outermost([...project.roots.map(({ path }) => path), folder]);
  // For a link, Node would check only its own path; the target is found through the open file, hence /proc.
  const rights = [...read.flatMap((path) => [path, join(path, "*")]), "/proc/self/fd/*"];
  const node = spawn(
    process.execPath,
    [...nodeFlags, ...rights.map((path) => `--allow-fs-read=${path}`), "--input-type=module", "-"],
    {
      cwd: "/",
      // The library checks that the binary exists, but does not start it.
      env: { TZ: "UTC", ESBUILD_BINARY_PATH: join(folder, "bin", "esbuild") },
      argv0: "watchfire builder",
      // Ctrl-C reaches a terminal's whole process group.
      detached: true,
      stdio: ["pipe", "ignore", "ignore", "pipe", esbuild.stdin ?? "ignore", esbuild.stdout ?? "ignore"],
    },
  );
  // From now on only the builder holds these streams.
  esbuild.stdin?.destroy();
  esbuild.stdout?.destroy();
  node.stdin?.on("error", () => undefined);
  builderScript(main).then(
    (text) => node.stdin?.end(text),
    () => node.kill("SIGKILL"),
  );
  return { node, esbuild };
}

/**
 * Returns the outermost folders. Node denies access to a folder that is listed after one below it, such as `node_modules` after
 * one of its packages (24.21 and 26.10).
 */
const outermost = (folders: readonly string[]): string[] =>
  folders.filter((folder) => !folders.some((other) => other !== folder && isBelow(other, folder)));

/** Built once per process. */
function builderScript(main: string): Promise<string> {
  script ??= import("./program-script.ts")
    .then(({ programScript }) => programScript(main))
    .catch((error: unknown) => {
      script = undefined; // a failure is not kept
      throw error;
    });
  return script;
}

/**
 * Starts a process in a folder that is then deleted. For an import with a computed name, esbuild searches folders from its
 * working directory upwards; here it finds neither that folder nor its parents.
 */
function inNoFolder(start: (cwd: string) => ChildProcess): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-builder-"));
  try {
    return start(folder);
  } finally {
    rmdirSync(folder);
  }
}

/** Returns the esbuild that npm has installed for this platform. */
function installedEsbuild(): { readonly binary: string; readonly version: string; readonly folder: string } {
  const packageFile = createRequire(import.meta.url).resolve("esbuild/package.json");
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  const platform = `@esbuild/${process.platform}-${process.arch}`;
  const binary = process.platform === "win32" ? "esbuild.exe" : "bin/esbuild";
  return {
    binary: createRequire(packageFile).resolve(`${platform}/${binary}`),
    version,
    folder: dirname(packageFile),
  };
}
