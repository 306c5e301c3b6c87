import childProcess from "node:child_process";
import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { Socket } from "node:net";

/** File descriptors of esbuild's standard input and output in this process. */
const serviceInput = 4;
const serviceOutput = 5;

/**
 * Loads esbuild's library onto a process that another process has started, because this one must not start any. `ended` is called
 * when that process is gone.
 */
export function openEsbuild(ended: () => void): void {
  const service = Object.assign(new EventEmitter(), {
    stdin: new Socket({ fd: serviceInput, readable: false, writable: true }),
    stdout: new Socket({ fd: serviceOutput, readable: true, writable: false }),
    ref: () => undefined,
    unref: () => undefined,
    kill: () => undefined,
  });
  for (const stream of [service.stdin, service.stdout]) {
    stream.on("error", ended);
    stream.on("close", ended);
  }
  Object.assign(childProcess, { spawn: () => service });
}

type Esbuild = typeof import("esbuild");

let loaded: Esbuild | undefined;

const library = (): Esbuild => {
  loaded ??= createRequire(import.meta.url)("esbuild") as Esbuild;
  return loaded;
};

/** esbuild's `build`. @throws BuildFailure as `build` does */
export const build: Esbuild["build"] = (options) => library().build(options);

/** esbuild's `context`. */
export const context: Esbuild["context"] = (options) => library().context(options);
