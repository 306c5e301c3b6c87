import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";

/** The file, and its write-ahead log. */
const files = ["checkpoint.db", "checkpoint.db-wal"];

const mebibyte = 1024 * 1024;

/** What of the disk the store takes for what, in bytes. */
interface DiskShares {
  /** The write-ahead log's, before it is copied back into the file. */
  readonly log: number;
  /** Events that wait; of all functions together never twice as much. */
  readonly spill: number;
  /** Dead letters. */
  readonly letters: number;
}

/** An update of a known object costs a third less with a log of 32 MiB than with SQLite's 4 MiB; more gains nothing. */
const mostLog = 32 * mebibyte;

/**
 * An eighth for each; waiting events may take two. Half of the disk is left for known objects, and for the growth of a
 * commit that is larger than the log.
 */
export const sharesOf = (room: number): DiskShares => ({
  log: Math.min(mostLog, room / 8),
  spill: room / 8,
  letters: room / 8,
});

/** How large the store in the folder could become, in bytes: what it takes now, and what is free on its disk. */
export function diskRoom(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return (
    bavail * bsize +
    files.reduce((sum, file) => sum + (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0), 0)
  );
}
