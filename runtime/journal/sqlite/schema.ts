import type { DatabaseSync } from "node:sqlite";
import { WatchfireError } from "../../base/errors.ts";
import type { PreviousEnd } from "../journal.ts";

/** Version of the tables, raised with every change. A file with a higher version is refused. */
const schemaVersion = 4;
/**
 * The version of a file whose log of known objects is empty. Runtimes of version 2 can use it, because they do not know the log.
 */
const withoutLog = 2;

/** Identifies the file as ours, so that another program's database is not taken for a checkpoint ("WFCP"). */
const applicationId = 0x57464350;

/** Separate from `known`, whose rows change with each event and cost half as much without bodies. */
const bodies = `
CREATE TABLE body (
  known INTEGER PRIMARY KEY REFERENCES known (id) ON DELETE CASCADE,
  bytes BLOB NOT NULL
) STRICT;
`;

/** Upgrades a file of version 1, which had bodies in `known`. */
const upgrade = `
${bodies}
INSERT INTO body SELECT id, body FROM known WHERE body IS NOT NULL ORDER BY id;
ALTER TABLE known DROP COLUMN body;
`;

// `known` has a rowid and an index instead of WITHOUT ROWID, so that bodies can refer to a number.
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

/** Changes of known objects that are not in their table yet, one row for each commit. */
const knownLog =
  "CREATE TABLE IF NOT EXISTS known_log (seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, rows TEXT NOT NULL) STRICT;";

/** Created if missing, without a new version, because a runtime that does not know the table can still use the file. */
const paused = "CREATE TABLE IF NOT EXISTS paused (function TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT;";

/** Entries of functions' own state. Created if missing, as `paused` is. */
const ownState = `CREATE TABLE IF NOT EXISTS own_state (
  function TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (function, key)
) STRICT, WITHOUT ROWID;`;

/**
 * Columns that are added if missing, without a new version. A runtime that does not know a column leaves its value in place, so
 * the columns of `known` also contain the resourceVersion that they belong to.
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
 * Checks a file before anything in it is changed, such as its mode or its journal mode.
 * @throws WatchfireError if it belongs to another program or to a newer version
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
 * Creates the tables, or checks the existing ones, and takes the store over: raises the fence, and records that the store is in
 * use in this `boot` of the machine. Without `boot`, the existing record stays. Runs in one transaction.
 */
export function takeOver(
  db: DatabaseSync,
  file: string,
  boot: string | undefined,
): { previousEnd: PreviousEnd; fence: number } {
  const { version, empty } = assertOurs(db, file);
  if (empty) {
    db.exec(
      `${tables} ${paused} ${ownState} ${knownLog} PRAGMA user_version = ${schemaVersion}; PRAGMA application_id = ${applicationId};`,
    );
    db.prepare("INSERT INTO meta (only, boot, clean, fence) VALUES (1, ?, 0, 1)").run(boot ?? "");
    return { previousEnd: "new", fence: 1 };
  }
  db.exec(paused);
  db.exec(ownState);
  if (version < withoutLog) db.exec(upgrade);
  db.exec(`${knownLog} PRAGMA user_version = ${schemaVersion};`);
  addColumns(db);
  const meta = db.prepare("SELECT boot, clean, fence FROM meta").get();
  if (!meta)
    throw new WatchfireError("WF_CHECKPOINT_CORRUPT", { what: "its first record is missing", place: { file } });
  const fence = Number(meta.fence) + 1;
  const previousEnd = meta.clean === 1 ? "clean" : meta.boot === boot ? "killed" : "power-loss";
  // After a power loss no boot is recorded, so that the next end also counts as a power loss unless it is clean.
  const noted = previousEnd === "power-loss" ? "" : (boot ?? "");
  if (boot === undefined) db.prepare("UPDATE meta SET fence = ?").run(fence);
  else db.prepare("UPDATE meta SET boot = ?, clean = 0, fence = ?").run(noted, fence);
  return { previousEnd, fence };
}

/** Records, in the open transaction, that the log of known objects is empty. */
export function noteNoLog(db: DatabaseSync): void {
  db.exec(`PRAGMA user_version = ${withoutLog}`);
}
