import { once } from "node:events";

/**
 * One wish to stop may come twice at once: a terminal tells its whole group, and npm passes on what it is told. What comes
 * within this time of the first, in milliseconds, is not a second wish.
 */
const echoMs = 500;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once, with status 2: whoever asks twice
 * means it. To be called before anything is opened that has to be closed.
 */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  let askedAt = 0;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      if (!stopping.signal.aborted) {
        askedAt = performance.now();
        stopping.abort();
      } else if (performance.now() - askedAt > echoMs) {
        process.stderr.write("asked twice: ended at once; what handlers were doing comes again at the next start\n");
        process.exit(2);
      }
    });
  }
  return stopping.signal;
}

/** Resolves once the signal has aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
