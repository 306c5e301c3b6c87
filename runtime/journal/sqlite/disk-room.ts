import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";

/** The database and its write-ahead log. */
const files = ["checkpoint.db", "checkpoint.db-wal"];

const mebibyte = 1024 * 1024;

/** The store's shares of the disk, in bytes. */
interface DiskShares {
  /** Maximum size of the write-ahead log before it is copied into the file. */
  readonly log: number;
  /** Budget of waiting events. All functions together never have twice as much. */
  readonly spill: number;
  /** Dead letters of all functions. */
  readonly letters: number;
  /** Maximum size of the whole store for a last body to be stored, so that the other shares still fit. */
  readonly bodies: number;
}

/**
 * Maximum share of the log. An update of a known object costs a third less with 32 MiB than with SQLite's 4 MiB; more gains
 * nothing.
 */
const mostLog = 32 * mebibyte;

/** Minimum size up to which bodies are stored, even on a disk that is nearly full. */
const minBodies = 16 * mebibyte;

/**
 * Returns an eighth of the room for each purpose; waiting events may take two. Half of the disk is left for known objects, and
 * for a commit that exceeds the log's share.
 */
export const sharesOf = (room: number): DiskShares => ({
  log: Math.min(mostLog, room / 8),
  spill: room / 8,
  letters: room / 8,
  bodies: Math.max(minBodies, room / 2),
});

/** Returns how large the store in the folder could become, in bytes: its present size and the free space of its disk. */
export function diskRoom(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return (
    bavail * bsize +
    files.reduce((sum, file) => sum + (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0), 0)
  );
}
