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
