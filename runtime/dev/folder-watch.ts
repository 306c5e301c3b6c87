import { realpathSync, statSync } from "node:fs";
import { watch } from "chokidar";
import type { Clock, Timer } from "../base/clock.ts";
import { systemReason } from "../base/wording.ts";

/** An editor writes a file in several steps; what comes within this time is one change. Milliseconds. */
const quietMs = 60;

/** So long an empty file may be one that is about to be written: editors truncate first. Milliseconds. */
const emptyMs = 2_000;

interface FolderWatchOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once after each burst of changes, and once when the watch is in place. */
  readonly changed: () => void;
  /** Called where something cannot be watched, with why. */
  readonly failed: (reason: string) => void;
}

/**
 * Watches all files below `folder`, installed packages and dot files left out, until the signal aborts. A change is told of
 * when every file of the burst is quiet: it has stopped growing, and it is not just truncated. Links are not followed: what
 * they lead to is no part of the folder, or is watched where it lies.
 */
export function watchFolder(folder: string, options: FolderWatchOptions): void {
  const { clock, signal, changed, failed } = options;
  const real = realpathSync(folder);
  const watcher = watch(real, {
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (path) => /[/\\](node_modules|\.[^/\\]+)([/\\]|$)/.test(path.slice(real.length)),
  });
  const burst = new Burst(clock, changed);
  watcher.on("all", (_, path) => burst.add(path));
  // What was saved while the watch was being set up was seen by nobody.
  watcher.on("ready", () => burst.add());
  watcher.on("error", (error) => failed(systemReason(error)));
  signal.addEventListener("abort", () => {
    burst.stop();
    void watcher.close();
  });
}

/** Changes that come together. */
class Burst {
  private readonly clock: Clock;
  private readonly over: () => void;
  /** What was seen of each file last; undefined where it is gone, or was not looked at. */
  private readonly seen = new Map<string, string | undefined>();
  private began = 0;
  private timer: Timer | undefined;

  constructor(clock: Clock, over: () => void) {
    this.clock = clock;
    this.over = over;
  }

  add(path?: string): void {
    if (this.seen.size === 0) this.began = this.clock.monotonic();
    if (path !== undefined) this.seen.set(path, looks(path));
    this.wait();
  }

  stop(): void {
    this.timer?.cancel();
  }

  private wait(): void {
    this.timer?.cancel();
    this.timer = this.clock.after(quietMs, () => this.look(), { unref: true });
  }

  private look(): void {
    const mayBeEmpty = this.clock.monotonic() - this.began >= emptyMs;
    let isQuiet = true;
    for (const [path, before] of this.seen) {
      const now = looks(path);
      if (now !== before || (now?.startsWith("0 ") && !mayBeEmpty)) isQuiet = false;
      this.seen.set(path, now);
    }
    if (isQuiet) {
      this.seen.clear();
      this.over();
    } else this.wait();
  }
}

/** A file's size in bytes and the time of its last change; undefined for what is gone or is no file. */
function looks(path: string): string | undefined {
  try {
    const stats = statSync(path);
    return stats.isFile() ? `${stats.size} ${stats.mtimeMs}` : undefined;
  } catch {
    return undefined;
  }
}
