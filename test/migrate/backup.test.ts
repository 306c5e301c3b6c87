import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { readBackup } from "../../runtime/journal/sqlite/backup-file.ts";
import { DataFolder } from "../../runtime/journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { backUpFolder, backUpJournals, backupFile, backupsToDelete } from "../../runtime/migrate/backup.ts";
import { alone } from "../../runtime/migrate/layout.ts";
import { restoreFolder } from "../../runtime/migrate/restore.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { letter } from "../journal/store-contract.ts";
import { folderOf } from "../tools/folder.ts";

const open = (folder: string) => new Checkpoint(new SqliteJournal({ folder, bootId: "this boot" }));

/** Commits an object and the position behind it. */
async function advance(store: Checkpoint, view: number, version: number): Promise<void> {
  const state = {
    uid: "u",
    resourceVersion: resourceVersion(String(version)),
    hash: "",
    deleted: false,
    matched: true,
  };
  const body = Buffer.alloc(2_000, String(version));
  await store.commit({
    ...emptyBatch,
    known: [{ view, key: `a/${version}`, state: { ...state, body } }],
    cursors: [{ view, namespace: "", selection: "", lowWaterMark: state.resourceVersion, epoch: 0, initial: false }],
  });
}

/** A data folder whose function `copy` is at resourceVersion `version`. */
async function folderAt(version: number): Promise<string> {
  const data = folderOf({});
  const store = open(data);
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  await advance(store, id, version);
  await store.close(true);
  return data;
}

const positionIn = ({ views }: { readonly views: SqliteJournal["state"]["views"] }) =>
  [...views.values()].flatMap(({ cursors }) => [...cursors.values()].map(({ lowWaterMark }) => lowWaterMark));

test("a backup is one moment of a store that a runtime writes meanwhile", async () => {
  const data = folderOf({});
  const running = open(data);
  const { id } = await running.openView("copy", "settings", "/ConfigMap");
  for (let version = 1; version <= 2_000; version++) await advance(running, id, version);
  const file = join(folderOf({}), "backup.db");
  let isTaken = false;
  const taken = backUpFolder(data, file, systemClock).finally(() => {
    isTaken = true;
  });
  let version = 2_000;
  while (!isTaken) {
    await advance(running, id, ++version);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await taken).toMatchObject({ place: "sqlite", functions: 1 });
  expect(version, "nothing was written meanwhile").toBeGreaterThan(2_000);
  const data2 = folderOf({});
  restoreFolder(data2, file, systemClock, false);
  const restored = open(data2);
  let objects = 0;
  await restored.known((await restored.views())[0]?.id ?? 0, () => objects++);
  const [mark] = positionIn(restored.journal.state);
  expect(objects).toBe(Number(mark));
  expect(objects).toBeGreaterThanOrEqual(2_000);
  await restored.close(true);
  await running.close(true);
});

test("whoever continues from a backup of a clean end takes it for a power loss, so that it flags repeats", async () => {
  const data = await folderAt(7);
  const file = join(folderOf({}), "backup.db");
  await backUpFolder(data, file, systemClock);
  const fresh = folderOf({});
  restoreFolder(fresh, file, systemClock, false);
  const restored = open(fresh);
  expect(restored.previousEnd).toBe("power-loss");
  await restored.close(true);
});

test("a backup has waiting events, dead letters, pauses and own state of journals in memory, and the bodies", async () => {
  const from = new MemoryStore();
  const { id } = await from.openView("copy", "settings", "/ConfigMap");
  await advance(from, id, 3);
  await from.setPaused("copy", 12);
  await from.commit({
    ...emptyBatch,
    deadLetters: [letter(id)],
    state: [{ function: "copy", key: "seen", value: "[1]" }],
  });
  const file = join(folderOf({}), "backup.db");
  const journals = [{ slot: 0, store: from }];
  const signal = new AbortController().signal;
  await backUpJournals({ place: "kubernetes", layout: alone, journals }, file, systemClock, signal);
  expect(readBackup(file).note).toMatchObject({ place: "kubernetes" });
  const data = folderOf({});
  restoreFolder(data, file, systemClock, false);
  const to = open(data);
  const view = (await to.views())[0]?.id ?? 0;
  expect([...(await to.paused())]).toEqual([["copy", 12]]);
  expect([...to.ownState("copy")]).toEqual([["seen", "[1]"]]);
  expect(await to.deadLetters()).toHaveLength(1);
  expect((await to.body(view, "a/3"))?.bytes).toEqual(Buffer.alloc(2_000, "3"));
  await to.close(true);
});

test("a folder that is further than the backup is left as it is unless that is asked for, and is kept then", async () => {
  const file = join(folderOf({}), "backup.db");
  await backUpFolder(await folderAt(7), file, systemClock);
  const data = await folderAt(8);
  const before = readFileSync(join(data, "checkpoint.db"));
  expect(() => restoreFolder(data, file, systemClock, false)).toThrow(
    /^WF_RESTORE_NEWER: functions are further .*: copy;/,
  );
  expect(readFileSync(join(data, "checkpoint.db")).equals(before)).toBe(true);
  const { previous = "", functions } = restoreFolder(data, file, systemClock, true);
  expect(functions).toEqual(["copy"]);
  expect(readFileSync(previous).equals(before)).toBe(true);
  const restored = open(data);
  expect(positionIn(restored.journal.state)).toEqual(["7"]);
  await restored.close(true);
});

test("a folder that is as far as the backup is replaced without a question", async () => {
  const file = join(folderOf({}), "backup.db");
  const data = await folderAt(7);
  await backUpFolder(data, file, systemClock);
  expect(restoreFolder(data, file, systemClock, false).functions).toEqual(["copy"]);
});

test("checkpoints that cannot be compared are replaced only when that is asked for", async () => {
  const file = join(folderOf({}), "backup.db");
  await backUpFolder(await folderAt(7), file, systemClock);
  const moved = await folderAt(3);
  new DataFolder(moved, systemClock).setAside();
  expect(() => restoreFolder(moved, file, systemClock, false)).toThrow(/^WF_RESTORE_UNCOMPARED.*were moved/);
  const damaged = await folderAt(3);
  writeFileSync(join(damaged, "checkpoint.db"), "no database");
  expect(() => restoreFolder(damaged, file, systemClock, false)).toThrow(/^WF_RESTORE_UNCOMPARED.*cannot be read/);
  for (const data of [moved, damaged]) expect(restoreFolder(data, file, systemClock, true).functions).toEqual(["copy"]);
});

test("the log of a killed runtime is not read into the backup that replaces its file", async () => {
  const file = join(folderOf({}), "backup.db");
  const killed = await folderAt(7);
  await backUpFolder(killed, file, systemClock);
  const running = open(killed);
  await advance(running, (await running.views())[0]?.id ?? 0, 9);
  const data = folderOf(
    Object.fromEntries(["checkpoint.db", "checkpoint.db-wal"].map((name) => [name, readFileSync(join(killed, name))])),
  );
  await running.close(true);
  expect(() => restoreFolder(data, file, systemClock, false)).toThrow(/^WF_RESTORE_NEWER/);
  restoreFolder(data, file, systemClock, true);
  const restored = open(data);
  expect(positionIn(restored.journal.state)).toEqual(["7"]);
  await restored.close(true);
});

test("no folder in use is restored, and no file that is no whole backup", async () => {
  const file = join(folderOf({}), "backup.db");
  await backUpFolder(await folderAt(7), file, systemClock);
  const data = folderOf({});
  const running = open(data);
  expect(() => restoreFolder(data, file, systemClock, true)).toThrow(/^WF_RESTORE_RUNNING/);
  await running.close(true);
  const others = folderOf({ "half.db": readFileSync(file).subarray(0, 20_000), "text.db": "no database at all" });
  const foreign = new DatabaseSync(join(others, "foreign.db"));
  foreign.exec("CREATE TABLE t (a)");
  foreign.close();
  writeFileSync(join(others, "store.db"), readFileSync(join(await folderAt(7), "checkpoint.db")));
  for (const name of ["half.db", "text.db", "foreign.db", "store.db", "absent.db"])
    expect(() => restoreFolder(data, join(others, name), systemClock, true), name).toThrow(/^WF_BACKUP_UNREADABLE/);
});

test("a damaged page of the store is not taken for a disk that refuses the backup", async () => {
  const data = await folderAt(7);
  const store = join(data, "checkpoint.db");
  const pages = new DatabaseSync(store);
  const root = Number(pages.prepare("SELECT rootpage FROM sqlite_schema WHERE type = 'index'").get()?.rootpage);
  const size = Number(pages.prepare("PRAGMA page_size").get()?.page_size);
  pages.close();
  const bytes = readFileSync(store);
  writeFileSync(store, bytes.fill(0xff, (root - 1) * size, root * size));
  const file = join(folderOf({}), "backup.db");
  await expect(backUpFolder(data, file, systemClock)).rejects.toThrow(/^WF_CHECKPOINT_CORRUPT/);
  expect(existsSync(file)).toBe(false);
});

test("a backup that cannot be written leaves nothing behind", async () => {
  const data = await folderAt(7);
  const folder = folderOf({ "file/in-the-way": "" });
  const file = join(folder, "file/in-the-way/backup.db");
  await expect(backUpFolder(data, file, systemClock)).rejects.toThrow(/^WF_BACKUP_UNWRITTEN/);
  await expect(backUpFolder(folderOf({}), join(folder, "backup.db"), systemClock)).rejects.toThrow(
    /^WF_CHECKPOINT_MISSING/,
  );
  expect(readdirSync(folder)).toEqual(["file"]);
  expect(existsSync(join(data, "checkpoint.db-wal")), "the stopped folder has a log").toBe(false);
});

test("a folder of backups keeps the newest, other files, and those that are being written", () => {
  const at = Date.parse("2026-11-27T10:00:00.500Z");
  const file = backupFile("backups/", at);
  expect(file).toBe("backups/watchfire-backup-20261127T100000Z.db");
  const names = ["25", "26", "27"].map((day) => `watchfire-backup-202611${day}T100000Z.db`);
  const [oldest = "", older = "", newest = ""] = names;
  const others = ["notes.txt", "watchfire-backup-latest.db", `.${newest}-a1b2c3`];
  expect(backupsToDelete([...names, ...others, `.${oldest}-d4e5f6`], 1, at)).toEqual([
    oldest,
    older,
    `.${oldest}-d4e5f6`,
  ]);
});
