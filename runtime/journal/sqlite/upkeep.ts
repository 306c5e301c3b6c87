import type { DatabaseSync } from "node:sqlite";
import type { Clock, Timer } from "../../base/clock.ts";
import { isFull } from "./fault.ts";

/** How often it is looked whether the file has shrunk, and how large the disk is, in milliseconds. */
const lookMs = 5_000;
/** While there is something to give back: a step of about 1 ms for each of so many pages. */
const stepMs = 100;
const stepPages = 64;
/** Free pages are used again by the next writes. What is given back is more than a quarter of the file, and than this. */
const worthBytes = 8 * 1024 * 1024;
const worthShare = 0.25;

/** Rewritten at a start: what is live fits into memory beside it, and the file is at least half empty. */
const mostLiveBytes = 64 * 1024 * 1024;

/** What of a file is free, in bytes, and how large it is. */
function pages(db: DatabaseSync) {
  const read = (pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const size = read("page_size");
  return { size, free: read("freelist_count"), all: read("page_count"), incremental: read("auto_vacuum") === 2 };
}

/** What the log holds goes into the file. On a disk that is full it stays where it is: it counts there as well. */
export function emptyLog(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isFull(error)) throw error;
  }
}

/**
 * Rewrites a file of a version before this one, which cannot give pages back bit by bit, where that frees most of it. What
 * fails for want of room leaves the file as it was. Gives whether it was done.
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
  /** Called now and then, for what else is to be kept up. */
  looked(): void;
  /** So many pages went into the log. */
  wrote(pages: number): void;
  /** All that is worth it was given back: the file is cut once the log is copied into it. */
  shrunk(): void;
}

/** Gives pages that are free back to the disk, a little at a time, between commits. */
export class SqliteUpkeep {
  private readonly db: DatabaseSync;
  private readonly clock: Clock;
  private readonly hooks: UpkeepHooks;
  private timer: Timer | undefined;
  /** Pages were given back, and the file is not cut yet. */
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

  /** Gives whether there is more to give back. */
  private step(looks: boolean): boolean {
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
      // A disk that is full or broken: commits say so.
      return false;
    }
  }
}
