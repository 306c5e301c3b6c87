#!/usr/bin/env -S node --max-semi-space-size=16
// Runs the command on Node 24 or newer. The runtime is TypeScript, which Node 24 executes directly. If the `node` on the PATH is
// older, it starts the one that npm installed next to this package.
import { spawn } from "node:child_process";
import { basename } from "node:path";
import { installedNode, isNewEnough, needed, withoutFolders } from "./required-node.js";

// As in the first line: the flag only works when Node starts. Given enough memory, V8 otherwise takes 64 MB for young objects
// alone.
const youngMegabytes = "--max-semi-space-size=16";
// Settings for glibc, as in the image: V8's compilers leave 20 MB unused in separate malloc arenas. The first line cannot contain
// them: pnpm takes its first word for the program.
const malloc = { MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" };

if (withoutFolders) {
  process.stderr.write(withoutFolders);
  process.exitCode = 1;
} else if (isNewEnough) {
  // Process 1 of a container ignores a signal that it does not handle; nothing is open before `stopSignal` handles it.
  process.on("SIGTERM", () => process.exit(143));
  const { keepCompiledCode } = await import("./compile-cache.js");
  keepCompiledCode();
  process.title = "watchfire";
  const { setEngineFlags } = await import("../v8/engine.ts");
  setEngineFlags();
  const { main } = await import("../cli/main.ts");
  // kubectl starts its plugin `watchfire` by this name.
  const isPlugin = basename(process.argv[1]).startsWith("kubectl-watchfire");
  await main(process.argv.slice(2), isPlugin ? "kubectl watchfire" : undefined);
} else {
  handOver();
}

function handOver() {
  const node = installedNode();
  if (!node) {
    process.stderr.write(needed);
    process.exit(1);
  }
  // The fourth descriptor is a pipe that closes when this process dies, even by SIGKILL, which ends the command.
  const child = spawn(node, [youngMegabytes, ...process.argv.slice(1)], {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: { ...malloc, ...process.env, WATCHFIRE_LAUNCHER_FD: "3" },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  // npm's shell dies of the signals that npm forwards, without passing them on.
  const parent = process.ppid;
  const look = () => process.ppid === parent || child.kill("SIGTERM");
  if (process.env.npm_lifecycle_event) setInterval(look, 250);
  child.on("exit", (code, signal) => {
    if (signal) process.kill(process.pid, signal);
    else process.exit(code ?? 2);
  });
}
