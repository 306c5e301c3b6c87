import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Descriptor of the pipe whose other end the starter holds. */
const descriptor = 4;

/** Program of a thread that blocks in the kernel until the pipe is closed. Neither isolates nor a busy main thread delay it. */
const watch = `
const { readSync } = require("node:fs");
try {
  while (readSync(${descriptor}, Buffer.alloc(1)) > 0);
} finally {
  process.kill(process.pid, "SIGKILL");
}`;

/**
 * Kills this process when its starter ends, even if the main thread is stuck. Resolves once the thread is running. Takes 8 MB.
 */
export function endWithStarter(): Promise<unknown> {
  const limits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };
  const worker = new Worker(watch, { eval: true, env: {}, argv: [], execArgv: [], resourceLimits: limits });
  worker.on("error", () => process.kill(process.pid, "SIGKILL"));
  return once(worker, "online");
}
