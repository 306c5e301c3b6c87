import { once } from "node:events";
import type { Environment } from "../base/config.ts";

/**
 * One request to stop may arrive twice: a terminal signals its whole process group, and npm forwards its signal. A signal within
 * this time of the first, in milliseconds, is not a second request.
 */
const echoMs = 500;

/** Interval at which a process started by npm checks its parent, in milliseconds. */
const parentMs = 250;

/**
 * Returns a signal that aborts at the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once, with status 2. Must
 * be called before anything is opened that must be closed. Between npm and this process there is a shell, which dies of the
 * signal that npm forwards, without forwarding it. So the end of that shell is a request to stop as well.
 */
export function stopSignal({ isStartedByNpm }: Pick<Environment, "isStartedByNpm">): AbortSignal {
  const stopping = new AbortController();
  let askedAt = 0;
  const ask = () => {
    askedAt = performance.now();
    stopping.abort();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const before = process.listeners(name);
    process.on(name, () => {
      if (!stopping.signal.aborted) ask();
      else if (performance.now() - askedAt > echoMs) {
        process.stderr.write(
          "second signal: the process ends at once; interrupted events are delivered again at the next start\n",
        );
        process.exit(2);
      }
    });
    // The entry point's listener ends the process. It is removed last, because a signal would be lost if it were removed first.
    for (const listener of before) process.off(name, listener);
  }
  if (isStartedByNpm) {
    const parent = process.ppid;
    const look = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(look);
      if (!stopping.signal.aborted) ask();
    }, parentMs).unref();
  }
  return stopping.signal;
}

/** Resolves once the signal has aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
