import type { DatabaseSync } from "node:sqlite";
import type { Clock, Timer } from "../../base/clock.ts";
import { isFull } from "./fault.ts";

/** Interval at which the file's free pages and the disk are checked, in milliseconds. */
const lookMs = 5_000;
/** Interval, in milliseconds, and pages of one step while pages are returned to the disk. A step takes about 1 ms. */
const stepMs = 100;
const stepPages = 64;
/**
 * Free pages are reused by later writes. They are only returned if they are more than this many bytes and this fraction of the
 * file.
 */
const worthBytes = 8 * 1024 * 1024;
const worthShare = 0.25;

/** Maximum size of the live part of a file that is rewritten at a start, because it must fit into memory. */
const mostLiveBytes = 64 * 1024 * 1024;

/** Returns the page size, the number of free pages and of all pages, and whether pages can be returned one by one. */
function pages(db: DatabaseSync) {
  const read = (pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const size = read("page_size");
  return { size, free: read("freelist_count"), all: read("page_count"), incremental: read("auto_vacuum") === 2 };
}

/** Copies the log into the file. On a full disk the log stays where it is, and remains valid. */
export function emptyLog(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isFull(error)) throw error;
  }
}

/**
 * Rewrites a file of an older version, which cannot return pages one by one, if that frees most of the file. A failure for lack
 * of room leaves the file unchanged. Returns whether the file was rewritten.
 */
export function rewriteIfEmpty(db: DatabaseSync): boolean {
  const { size, free, all, incremental } = pages(db);
  const live = (all - free) * size;
  if (incremental || free * size < worthBytes || live > mostLiveBytes || live > free * size) return false;
  try {
    db.exec("PRAGMA temp_store = MEMORY; PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
    return true;
  } catch (error) {
    if (!isFull(error)) throw error;
    return false;
  } finally {
    db.exec("PRAGMA temp_store = DEFAULT");
  }
}

interface UpkeepHooks {
  /** Called at each check, for other upkeep. */
  looked(): void;
  /** Called after a step, with the number of pages it wrote to the log. */
  wrote(pages: number): void;
  /** Called after the last step. The file is truncated once the log is copied into it. */
  shrunk(): void;
}

/** Returns free pages to the disk, a few at a time, between commits. */
export class SqliteUpkeep {
  private readonly db: DatabaseSync;
  private readonly clock: Clock;
  private readonly hooks: UpkeepHooks;
  private timer: Timer | undefined;
  /** True while pages were returned and the file is not truncated yet. */
  private shrinking = false;

  constructor(db: DatabaseSync, clock: Clock, hooks: UpkeepHooks) {
    this.db = db;
    this.clock = clock;
    this.hooks = hooks;
    this.later(lookMs);
  }

  stop(): void {
    this.timer?.cancel();
  }

  private later(delayMs: number): void {
    this.timer = this.clock.after(
      delayMs,
      () => {
        this.later(this.step(delayMs === lookMs) ? stepMs : lookMs);
      },
      { unref: true },
    );
  }

  /** Performs one step. Returns whether there is more to do. */
  private step(looks: boolean): boolean {
    // A commit may take several turns.
    if (this.db.isTransaction) return this.shrinking;
    try {
      if (looks) this.hooks.looked();
      const { size, free, all, incremental } = pages(this.db);
      const worth = free * size >= worthBytes && free >= worthShare * all;
      if (incremental && worth) {
        this.db.exec(`PRAGMA incremental_vacuum(${stepPages})`);
        this.hooks.wrote(2 * stepPages);
        this.shrinking = true;
      } else if (this.shrinking) {
        this.hooks.shrunk();
        this.shrinking = false;
      }
      return this.shrinking;
    } catch {
      // Ignored: commits report a disk that is full or broken.
      return false;
    }
  }
}
