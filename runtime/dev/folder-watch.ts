import { watch } from "chokidar";
import type { Clock, Timer } from "../clock.ts";

/** An editor writes a file in several steps; what comes within this time is one change. */
const quietMs = 60;

/**
 * Calls `changed` once after each burst of changes below `folder`, installed packages and dot files left out, until
 * `signal` aborts; and once when the watch is in place.
 */
export function watchFolder(folder: string, clock: Clock, signal: AbortSignal, changed: () => void): void {
  let quiet: Timer | undefined;
  const watcher = watch(folder, {
    ignoreInitial: true,
    ignored: (path) => /[/\\](node_modules|\.[^/\\]+)([/\\]|$)/.test(path.slice(folder.length)),
  });
  const soon = () => {
    quiet?.cancel();
    quiet = clock.after(quietMs, changed, { unref: true });
  };
  watcher.on("all", soon);
  // What was saved while the watch was being set up was seen by nobody.
  watcher.on("ready", soon);
  signal.addEventListener("abort", () => {
    quiet?.cancel();
    void watcher.close();
  });
}
