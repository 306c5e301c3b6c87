// Entry point of the executor process. It is started with an empty environment, descriptor 3 as its only file, and no rights.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { installedIsolatedVm, lifelineArgument, refusal } from "../requirements.ts";
import { encodeFrame, frameType } from "../wire.ts";
import { endWithStarter } from "./lifeline.ts";

/** Descriptor of the stream to the parent. */
const descriptor = 3;

// Ctrl-C signals the parent's whole process group. The parent lets handlers finish; this process ends when its stream closes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

// `ps` must show this name whichever program (such as setpriv) started the process.
process.title = "watchfire executor";
// This process writes no files. If a guest escapes its isolate, other users cannot read what it writes.
process.umask(0o077);

// The program may have been passed on standard input, which Node would keep open for ever.
closeSync(0);

const stream = new Socket({ fd: descriptor });
const isolatedVm = installedIsolatedVm();
const reason = refusal(process.versions.node, process.execArgv, isolatedVm);
if (reason) {
  // No isolate exists yet, so this process can exit normally.
  stream.end(Buffer.concat(encodeFrame(frameType.refused, { reason })));
  process.exitCode = 1;
} else {
  const { Executor } = await import("./executor.ts");
  if (process.argv.includes(lifelineArgument)) void endWithStarter();
  new Executor(stream, "watchfire:guest").start({ node: process.versions.node, isolatedVm });
}
