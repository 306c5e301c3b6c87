import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import type { LogOutput } from "./log-writer.ts";

/**
 * The standard output as one that never waits for its reader. A regular file takes all at once. A pipe or a terminal is
 * opened once more, so that it is non-blocking here and for nobody else who holds it. An output that cannot be opened,
 * such as a socket, or a pipe of another user's, is made non-blocking for all by Node. Node does so with each pipe or
 * socket that `process.stdout` is.
 */
export function standardOutput(): LogOutput {
  const descriptor = nonBlocking(1);
  return (bytes) => {
    try {
      return writeSync(descriptor, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
      throw error;
    }
  };
}

function nonBlocking(descriptor: number): number {
  const stats = fstatSync(descriptor);
  if (!stats.isFIFO() && !stats.isSocket() && !isatty(descriptor)) return descriptor;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    void process.stdout; // reading it is enough: libuv's uv_pipe_open sets O_NONBLOCK
    return descriptor;
  }
}
