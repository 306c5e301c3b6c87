import { existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder, sync } from "../base/folder.ts";
import { version } from "../base/version.ts";
import { systemReason } from "../base/wording.ts";
import { type BackupNote, copyStore, fillStore, sealBackup } from "../journal/sqlite/backup-file.ts";
import { alone } from "./layout.ts";
import { copyAll } from "./move.ts";
import type { ReadJournals } from "./read-store.ts";

/** A backup that was written. */
export interface WrittenBackup extends BackupNote {
  readonly file: string;
  readonly bytes: number;
  readonly functions: number;
}

/** All checkpoints in one journal. */
const onlySlot = { layout: alone, slot: 0 };

/**
 * Writes a backup of a data folder, while a runtime uses it or not. Replaces `file` once the backup is complete.
 * @throws WatchfireError WF_BACKUP_UNWRITTEN; WF_CHECKPOINT_CORRUPT if a page of the store is damaged; others of its section
 */
export const backUpFolder = (data: string, file: string, clock: Pick<Clock, "now">): Promise<WrittenBackup> =>
  write(file, clock, "sqlite", async (folder) => {
    const copy = join(folder, "checkpoint.db");
    await copyStore(data, copy);
    // Adds what this version has and an older file lacks.
    return fillStore(folder);
  });

/** Writes a backup of checkpoints that were read from Secrets or NATS. @throws as `backUpFolder`; the signal's reason */
export const backUpJournals = (
  { place, layout, journals }: ReadJournals,
  file: string,
  clock: Pick<Clock, "now">,
  signal: AbortSignal,
): Promise<WrittenBackup> =>
  write(file, clock, place, (folder) => fillStore(folder, (to) => copyAll({ layout, journals }, to, onlySlot, signal)));

async function write(
  file: string,
  clock: Pick<Clock, "now">,
  place: string,
  copy: (folder: string) => Promise<string>,
): Promise<WrittenBackup> {
  const note = { takenAt: clock.now(), place, version };
  const parent = dirname(resolve(file));
  let folder: string | undefined;
  try {
    makeFolder(parent);
    // Next to the target, so that the last step is a rename.
    folder = mkdtempSync(join(parent, `.${basename(file)}-`));
    const copied = await copy(folder);
    const state = sealBackup(copied, note);
    renameSync(copied, file);
    sync(parent);
    const functions = new Set([...state.views.values()].map((view) => view.function)).size;
    return { ...note, file, bytes: statSync(file).size, functions };
  } catch (error) {
    throw unwritten(error, file, folder);
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

const damagedCopy: ReadonlySet<string> = new Set(["WF_BACKUP_UNREADABLE", "WF_CHECKPOINT_CORRUPT"]);

/** Errors of the store that is read keep their code; those of the copy say that the backup could not be written. */
function unwritten(error: unknown, file: string, folder: string | undefined): unknown {
  const isOurs = (place: string | undefined) => folder !== undefined && place?.startsWith(folder);
  if (error instanceof WatchfireError && !isOurs(error.detail.place?.file)) return error;
  const isForeign =
    !(error instanceof WatchfireError) && !(error instanceof Error && ("code" in error || "errcode" in error));
  if (isForeign) return error;
  // A damaged copy has a damaged original.
  if (error instanceof WatchfireError && damagedCopy.has(error.code))
    return new WatchfireError("WF_CHECKPOINT_CORRUPT", { what: `its copy: ${error.detail.what}`, cause: error });
  const what = error instanceof WatchfireError ? error.detail.what : systemReason(error);
  return new WatchfireError("WF_BACKUP_UNWRITTEN", { what, place: { file }, cause: error });
}

const prefix = "watchfire-backup-";
const nameOf = (at: number): string => `${prefix}${new Date(at).toISOString().replace(/[-:]|\.\d+/g, "")}.db`;
const isBackup = /^watchfire-backup-\d{8}T\d{6}Z\.db$/;
const isUnfinished = /^\.(watchfire-backup-\d{8}T\d{6}Z\.db)-/;

/** Age from which on an unfinished backup was left by a process that was killed, in milliseconds. */
const abandonedMs = 24 * 60 * 60 * 1000;

/** Returns the file of a backup that is taken now: `to` itself, or a name with the time where `to` is a folder. */
export function backupFile(to: string, now: number): string {
  const isFolder = to.endsWith("/") || (existsSync(to) && statSync(to).isDirectory());
  return isFolder ? join(to, nameOf(now)) : to;
}

/** Returns the names in a folder to delete so that the newest `keep` backups remain, and what killed processes have left. */
export function backupsToDelete(names: readonly string[], keep: number, now: number): readonly string[] {
  const ours = names.filter((name) => isBackup.test(name)).toSorted();
  const abandoned = names.filter((name) => (isUnfinished.exec(name)?.[1] ?? "~") < nameOf(now - abandonedMs));
  return [...ours.slice(0, Math.max(0, ours.length - keep)), ...abandoned];
}
