import { realpathSync, statSync } from "node:fs";
import { watch } from "chokidar";
import type { Clock, Timer } from "../base/clock.ts";
import { systemReason } from "../base/wording.ts";

/** Time within which several writes count as one change, in milliseconds: an editor writes a file in several steps. */
const quietMs = 60;

/** How long an empty file may be about to be written, in milliseconds: editors truncate first. */
const emptyMs = 2_000;

interface FolderWatchOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called once after each burst of changes, and once when the watch is in place. */
  readonly changed: () => void;
  /** Called with the reason if something cannot be watched. */
  readonly failed: (reason: string) => void;
}

/**
 * Watches all files below `folder`, except installed packages and dot files, until the signal aborts. A change is reported when
 * every file of the burst is quiet: it has stopped growing, and was not just truncated. Links are not followed: their targets are
 * not part of the folder, or are watched in their own place.
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
  // Changes made while the watch was being set up were not seen.
  watcher.on("ready", () => burst.add());
  watcher.on("error", (error) => failed(systemReason(error)));
  signal.addEventListener("abort", () => {
    burst.stop();
    void watcher.close();
  });
}

/** Changes that occur together. */
class Burst {
  private readonly clock: Clock;
  private readonly over: () => void;
  /** Last known state of each file; `undefined` if it is gone or was not examined. */
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

/** Returns a file's size in bytes and the time of its last change; `undefined` if it is gone or not a file. */
function looks(path: string): string | undefined {
  try {
    const stats = statSync(path);
    return stats.isFile() ? `${stats.size} ${stats.mtimeMs}` : undefined;
  } catch {
    return undefined;
  }
}
