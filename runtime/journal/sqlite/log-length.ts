import type { DatabaseSync } from "node:sqlite";

/** Of each page in the log. SQLite's file format, "The Write-Ahead Log": a frame is a header of 24 bytes and a page. */
export const frameHeaderBytes = 24;

/** The first SQLite that counts the log without copying it; to those before, the same words say that they copy. */
const countsFrom = [3, 51] as const;

/**
 * Gives a function that says how many bytes the write-ahead log has, by SQLite's own count. It takes 3 us. It says undefined
 * where SQLite is too old to count, within a transaction of this connection, and once that is closed.
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
