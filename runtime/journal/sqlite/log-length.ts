import type { DatabaseSync } from "node:sqlite";

/**
 * Header size of each page in the log. SQLite's file format, "The Write-Ahead Log": a frame is a header of 24 bytes and a page.
 */
export const frameHeaderBytes = 24;

/** The first version of SQLite that counts the log without copying it. Earlier ones copy the log at the same statement. */
const countsFrom = [3, 51] as const;

/**
 * Returns a function that returns the size of the write-ahead log in bytes, as counted by SQLite, in 3 us. It returns `undefined`
 * if SQLite is too old to count, within a transaction of this connection, and after the connection is closed.
 */
export function logLengthOf(db: DatabaseSync): () => number | undefined {
  const [major = 0, minor = 0] = String(db.prepare("SELECT sqlite_version() AS version").get()?.version)
    .split(".")
    .map(Number);
  if (major < countsFrom[0] || (major === countsFrom[0] && minor < countsFrom[1])) return () => undefined;
  const pageBytes = Number(db.prepare("PRAGMA page_size").get()?.page_size);
  const count = db.prepare("PRAGMA wal_checkpoint(NOOP)");
  return () => {
    try {
      const frames = Number(count.get()?.log);
      return frames >= 0 ? frames * (pageBytes + frameHeaderBytes) : undefined;
    } catch {
      return undefined;
    }
  };
}
