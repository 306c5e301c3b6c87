import type { DatabaseSync } from "node:sqlite";
import { WatchfireError } from "../../base/errors.ts";
import type { PreviousEnd } from "../journal.ts";

/** Raised with every change of the tables; a file with a higher one is refused. */
const schemaVersion = 4;
/** What a file goes back to where its log of known objects is empty: a runtime of version 2 does not know of it. */
const withoutLog = 2;

/** Marks the file as ours, so that another program's database is not taken for a checkpoint ("WFCP"). */
const applicationId = 0x57464350;

/** Apart from `known`, whose rows change with each event, and without their bodies cost half. */
const bodies = `
CREATE TABLE body (
  known INTEGER PRIMARY KEY REFERENCES known (id) ON DELETE CASCADE,
  bytes BLOB NOT NULL
) STRICT;
`;

/** A file of version 1 had bodies in `known`. */
const upgrade = `
${bodies}
INSERT INTO body SELECT id, body FROM known WHERE body IS NOT NULL ORDER BY id;
ALTER TABLE known DROP COLUMN body;
`;

// `known` has a rowid and an index beside it rather than WITHOUT ROWID, so that bodies hang on a number.
const tables = `
CREATE TABLE meta (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  cluster TEXT,
  boot TEXT NOT NULL,
  clean INTEGER NOT NULL,
  fence INTEGER NOT NULL
) STRICT;
CREATE TABLE view (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  function TEXT NOT NULL,
  trigger TEXT NOT NULL,
  resource TEXT NOT NULL,
  retired_at INTEGER,
  identity TEXT,
  manifest TEXT,
  UNIQUE (function, trigger, resource)
) STRICT;
CREATE TABLE cursor (
  view INTEGER NOT NULL REFERENCES view (id) ON DELETE CASCADE,
  namespace TEXT NOT NULL,
  selection TEXT NOT NULL,
  low_water_mark TEXT,
  epoch INTEGER NOT NULL,
  initial INTEGER NOT NULL,
  PRIMARY KEY (view, namespace)
) STRICT, WITHOUT ROWID;
CREATE TABLE known (
  id INTEGER PRIMARY KEY,
  view INTEGER NOT NULL REFERENCES view (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  uid TEXT NOT NULL,
  resource_version TEXT NOT NULL,
  hash TEXT NOT NULL,
  flags INTEGER NOT NULL,
  keys TEXT,
  form TEXT,
  UNIQUE (view, key)
) STRICT;
${bodies}
CREATE TABLE journal (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL
) STRICT;
CREATE TABLE spill (
  function TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  view INTEGER NOT NULL REFERENCES view (id) ON DELETE CASCADE,
  header TEXT NOT NULL,
  body BLOB NOT NULL,
  old_body BLOB,
  PRIMARY KEY (function, sequence)
) STRICT;
CREATE INDEX spill_view ON spill (view);
CREATE TABLE dead_letter (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  function TEXT NOT NULL,
  header TEXT NOT NULL,
  body BLOB NOT NULL,
  old_body BLOB
) STRICT;
CREATE INDEX dead_letter_function ON dead_letter (function);
`;

/** Changes of known objects that are not in their table yet, those of a commit in one row. */
const knownLog =
  "CREATE TABLE IF NOT EXISTS known_log (seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, rows TEXT NOT NULL) STRICT;";

/** Made where it is missing, with no new version: a runtime that does not know it can still use the file. */
const paused = "CREATE TABLE IF NOT EXISTS paused (function TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT;";

/**
 * Columns that are added where they are missing, with no new version. A runtime that does not know one leaves what is there. So
 * those of `known` say of which resourceVersion they are.
 */
const addedColumns = [
  ["known", "keys"],
  ["known", "form"],
  ["view", "identity"],
  ["view", "manifest"],
] as const;

function addColumns(db: DatabaseSync): void {
  const has = db.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  for (const [table, column] of addedColumns)
    if (!has.get(table, column)) db.exec(`ALTER TABLE ${table} ADD COLUMN ${column} TEXT`);
}

/**
 * Looks at a file before anything of it is changed: its mode, or how it keeps its log.
 * @throws WatchfireError where it is another program's, or of a newer version
 */
export function assertOurs(db: DatabaseSync, file: string): { readonly version: number; readonly empty: boolean } {
  const version = Number(db.prepare("PRAGMA user_version").get()?.user_version);
  const application = Number(db.prepare("PRAGMA application_id").get()?.application_id);
  const empty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (!empty && application !== applicationId) {
    throw new WatchfireError("WF_CHECKPOINT_CORRUPT", {
      what: "the file is another program's database",
      place: { file },
    });
  }
  if (version > schemaVersion) {
    throw new WatchfireError("WF_CHECKPOINT_NEWER_SCHEMA", {
      what: `its schema is newer than ${schemaVersion}`,
      place: { file },
      actual: version,
    });
  }
  return { version, empty };
}

/**
 * Makes the tables, or checks those that are there, and takes the store over. It raises the fence, and notes that the
 * store is in use on this `boot` of the machine; without a boot, that note stays. Runs in one transaction.
 */
export function takeOver(
  db: DatabaseSync,
  file: string,
  boot: string | undefined,
): { previousEnd: PreviousEnd; fence: number } {
  const { version, empty } = assertOurs(db, file);
  if (empty) {
    db.exec(
      `${tables} ${paused} ${knownLog} PRAGMA user_version = ${schemaVersion}; PRAGMA application_id = ${applicationId};`,
    );
    db.prepare("INSERT INTO meta (only, boot, clean, fence) VALUES (1, ?, 0, 1)").run(boot ?? "");
    return { previousEnd: "new", fence: 1 };
  }
  db.exec(paused);
  if (version < withoutLog) db.exec(upgrade);
  db.exec(`${knownLog} PRAGMA user_version = ${schemaVersion};`);
  addColumns(db);
  const meta = db.prepare("SELECT boot, clean, fence FROM meta").get();
  if (!meta) throw new WatchfireError("WF_CHECKPOINT_CORRUPT", { what: "its first record is gone", place: { file } });
  const fence = Number(meta.fence) + 1;
  const previousEnd = meta.clean === 1 ? "clean" : meta.boot === boot ? "killed" : "power-loss";
  // After a power loss no boot is noted, so that whatever end comes next counts as one as well, unless it is clean.
  const noted = previousEnd === "power-loss" ? "" : (boot ?? "");
  if (boot === undefined) db.prepare("UPDATE meta SET fence = ?").run(fence);
  else db.prepare("UPDATE meta SET boot = ?, clean = 0, fence = ?").run(noted, fence);
  return { previousEnd, fence };
}

/** Notes, in the transaction that is open, that the log of known objects is empty. */
export function noteNoLog(db: DatabaseSync): void {
  db.exec(`PRAGMA user_version = ${withoutLog}`);
}
