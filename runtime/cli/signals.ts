import type { WatchfireError } from "../errors.ts";

/**
 * Resolves at the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once: whoever asks twice means it.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (asked) process.exit(2);
        asked = true;
        resolve(signal);
      });
    }
  });
}

/** Waits for the signal to stop. @throws WatchfireError why the runtime lost its data folder, if that comes first */
export async function untilAsked(
  asked: Promise<void>,
  runtime: { readonly lost: Promise<WatchfireError> },
): Promise<void> {
  const lost = await Promise.race([asked.then(() => undefined), runtime.lost]);
  if (lost) throw lost;
}
