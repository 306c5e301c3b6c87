// The executor process: started by the parent with an empty environment, no file but descriptor 3, and no rights.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { installedIsolatedVm, lifelineArgument, refusal } from "../requirements.ts";
import { encodeFrame, frameType } from "../wire.ts";
import { endWithStarter } from "./lifeline.ts";

/** The stream to the parent. */
const descriptor = 3;

// Ctrl-C reaches the parent's whole group: it lets handlers finish, and this process ends when its stream does.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

// Whatever program started this one for its starter, `ps` shows the name.
process.title = "watchfire executor";
// Nothing is written by this process; a guest that has left its isolate finds nothing that others may read.
process.umask(0o077);

// This program may have come by the standard input; Node would keep it open for ever.
closeSync(0);

const stream = new Socket({ fd: descriptor });
const isolatedVm = installedIsolatedVm();
const reason = refusal(process.versions.node, process.execArgv, isolatedVm);
if (reason) {
  // No isolate exists yet, so that this process may end as any other.
  stream.end(Buffer.concat(encodeFrame(frameType.refused, { reason })));
  process.exitCode = 1;
} else {
  const { Executor } = await import("./executor.ts");
  if (process.argv.includes(lifelineArgument)) void endWithStarter();
  new Executor(stream, "watchfire:guest").start({ node: process.versions.node, isolatedVm });
}
