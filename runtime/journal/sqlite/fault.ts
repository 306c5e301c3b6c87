import { ZodError } from "zod";
import { WatchfireError } from "../../base/errors.ts";
import { systemReason } from "../../base/wording.ts";

// Primary result codes of SQLite (sqlite3.h).
const busy = 5;
const readOnly = 8;
const corrupt = 11;
const full = 13;
const cannotOpen = 14;
const notADatabase = 26;

/** File system errors for a folder that cannot be written. Below /proc, that is ENOENT. */
const unwritable: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR", "ENOENT"]);

/** Maps an error of SQLite or of the file system about `file` to the registry's code. */
export function checkpointFault(error: unknown, file: string): WatchfireError {
  if (error instanceof WatchfireError) return error;
  const place = { file };
  const errcode = primaryCode(error);
  const reason = errcode === undefined ? systemReason(error) : `SQLite says: ${systemReason(error)}`;
  const detail = (what: string) => ({ place, what: `${what}: ${reason}`, cause: error });
  if (errcode === busy)
    return new WatchfireError("WF_CHECKPOINT_LOCKED", { place, what: "the file is locked", cause: error });
  if (errcode === corrupt || errcode === notADatabase)
    return new WatchfireError("WF_CHECKPOINT_CORRUPT", detail("the file is not a valid database"));
  if (error instanceof SyntaxError || error instanceof ZodError)
    return new WatchfireError("WF_CHECKPOINT_CORRUPT", { place, what: "a row cannot be read", cause: error });
  const system = error instanceof Error && "code" in error ? String(error.code) : "";
  if (errcode === readOnly || errcode === cannotOpen || unwritable.has(system)) {
    return new WatchfireError("WF_CHECKPOINT_READ_ONLY", detail("it cannot be opened for writing"));
  }
  return new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", detail("a write failed"));
}

/** True if the disk was full. */
export const isFull = (error: unknown): boolean => primaryCode(error) === full;

/** True if another connection held the lock. */
export const isBusy = (error: unknown): boolean => primaryCode(error) === busy;

/** Returns the low byte of SQLite's extended result code. */
function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}
