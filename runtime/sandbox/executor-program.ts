import { type ChildProcess, spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, resolve } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { requiredFlags } from "./executor/requirements.ts";
import { executorScript } from "./executor-script.host.ts";

/** A program for Node. */
export interface Program {
  /** Node's flags, and the program's file or `-`. */
  readonly args: readonly string[];
  /** What it reads from its standard input, which it finds at its end then. */
  readonly input?: () => Promise<string>;
}

/**
 * The executor's program: it speaks over descriptor 3. In a checkout it is TypeScript, and handed over as a script; in an
 * image it is a file of JavaScript already.
 */
export function executorProgram(): Program {
  const flags = [...requiredFlags, "--permission", "--allow-addons"];
  const type = extname(import.meta.url);
  const main = fileURLToPath(new URL(`./executor/main${type}`, import.meta.url));
  if (type === ".ts") {
    const args = [...flags, ...readable(nativeParts()), "--input-type=module", "-"];
    return { args, input: () => executorScript(main) };
  }
  const own = resolve(dirname(main), "..");
  return { args: [...flags, ...readable([own, resolve(own, "../package.json"), ...nativeParts()]), main] };
}

/** Starts an executor: with nothing of the starter's environment, folder or files; under a name of its own in `ps`. */
export function spawnExecutor({ args, input }: Program, descriptor: "pipe" | Duplex): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: "/",
    env: { TZ: "UTC" },
    argv0: "watchfire executor",
    // Ctrl-C reaches a terminal's whole group: an executor that is still starting would end by it.
    detached: true,
    stdio: [input ? "pipe" : "ignore", "ignore", "ignore", descriptor],
  });
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

/** isolated-vm, and the loader of its native code, which looks at the last one to tell musl from glibc. */
function nativeParts(): string[] {
  const isolatedVm = dirname(realpathSync(createRequire(import.meta.url).resolve("isolated-vm/package.json")));
  const loader = dirname(
    realpathSync(createRequire(`${isolatedVm}/package.json`).resolve("node-gyp-build/package.json")),
  );
  return [isolatedVm, loader, "/etc/alpine-release"];
}
