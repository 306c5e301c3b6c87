import { once } from "node:events";
import type { Environment } from "../base/config.ts";

/**
 * One wish to stop may come twice at once: a terminal tells its whole group, and npm passes on what it is told. What comes
 * within this time of the first, in milliseconds, is not a second wish.
 */
const echoMs = 500;

/** How often a process that npm started looks for its parent, in milliseconds. */
const parentMs = 250;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once, with status 2: whoever asks twice
 * means it. To be called before anything is opened that has to be closed.
 *
 * Between npm and this process there is a shell, which dies of the signal that npm passes on and tells nobody. So the end of
 * that shell is a wish to stop as well.
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
        process.stderr.write("asked twice: ended at once; what handlers were doing comes again at the next start\n");
        process.exit(2);
      }
    });
    // The listener of the program's entry ends the process. A signal that came meanwhile would be lost if it went first.
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
