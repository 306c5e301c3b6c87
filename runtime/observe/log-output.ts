import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import type { LogOutput } from "./log-writer.ts";

/**
 * Opens the standard output so that writing never blocks. A regular file accepts all data at once. A pipe or a terminal is opened
 * again, so that it is non-blocking only here and not for other processes that hold it. If an output cannot be opened, such as
 * a socket or another user's pipe, Node sets it non-blocking for every process that shares it, as it does for
 * `process.stdout`.
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
    void process.stdout; // accessing it is enough: libuv's uv_pipe_open sets O_NONBLOCK
    return descriptor;
  }
}
