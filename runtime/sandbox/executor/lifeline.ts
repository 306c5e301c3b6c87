import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** The pipe whose other end the starter holds. */
const descriptor = 4;

/** Waits for the pipe's end in the kernel, on a thread that no isolate and no long turn of the main thread holds up. */
const watch = `
const { readSync } = require("node:fs");
try {
  while (readSync(${descriptor}, Buffer.alloc(1)) > 0);
} finally {
  process.kill(process.pid, "SIGKILL");
}`;

/** Ends this process when its starter ends, also while its main thread is stuck. Resolves once the thread watches. 8 MB. */
export function endWithStarter(): Promise<unknown> {
  const limits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };
  const worker = new Worker(watch, { eval: true, env: {}, argv: [], execArgv: [], resourceLimits: limits });
  worker.on("error", () => process.kill(process.pid, "SIGKILL"));
  return once(worker, "online");
}
