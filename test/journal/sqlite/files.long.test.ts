import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";

// Each test opens the store in separate processes.
vi.setConfig({ testTimeout: 60_000 });

/** Root may write regardless of the mode, so in that case another user opens the store. */
const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stdout.write("skipped: a lock of another user; it takes root to make one\n");
const nobody = 65534;

/**
 * The folder of a killed runtime: the last commits are in the log. If this process is root, it belongs to another user.
 */
async function killed(): Promise<string> {
  const made = mkdtempSync(join(tmpdir(), "watchfire-files-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  const store = new Checkpoint(new SqliteJournal({ folder: join(made, "first") }));
  await store.openView("copy", "settings", "/ConfigMap");
  const folder = join(made, "data");
  cpSync(join(made, "first"), folder, { recursive: true });
  await store.close(false);
  const paths = [made, folder, ...readdirSync(folder).map((name) => join(folder, name))];
  for (const path of paths) if (isRoot) chownSync(path, nobody, nobody);
  return folder;
}

const outcome = (folder: string): string =>
  execFileSync(
    process.execPath,
    [resolve(import.meta.dirname, "opener.ts"), folder, ...(isRoot ? [String(nobody)] : [])],
    { encoding: "utf8" },
  );

const never = Number.POSITIVE_INFINITY;

/** Returns the error of opening it; an opened store is closed. */
const attempt = async (begin: () => Checkpoint<SqliteJournal>): Promise<boolean> => {
  let store: Checkpoint<SqliteJournal>;
  try {
    store = begin();
  } catch {
    return true;
  }
  await store.close(true);
  return false;
};

const names = ["checkpoint.db", "checkpoint.db-shm", "checkpoint.db-wal", "checkpoint.lock"];

test.each(names)("%s is named where it cannot be written, and is all that has to be mended", async (name) => {
  const folder = await killed();
  expect(readdirSync(folder).sort()).toEqual(names);
  const modes = () => names.map((each) => statSync(join(folder, each)).mode & 0o777);
  chmodSync(join(folder, name), 0o400);
  const before = modes();
  expect(outcome(folder)).toMatch(`WF_CHECKPOINT_READ_ONLY ${join(folder, name)}: it cannot be opened for writing`);
  expect(modes()).toEqual(before);
  chmodSync(join(folder, name), 0o600);
  expect(outcome(folder)).toBe('["copy"]');
});

test("a file that cannot be written leaves no other behind that cannot", async () => {
  const folder = await killed();
  expect(outcome(folder)).toBe('["copy"]');
  const file = join(folder, "checkpoint.db");
  chmodSync(file, 0o400);
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_READ_ONLY ${file}: `);
  expect(readdirSync(folder).sort()).toEqual(["checkpoint.db", "checkpoint.lock"]);
});

test("a folder in which a file is still to be made, and cannot be, is named itself", async () => {
  const folder = await killed();
  expect(outcome(folder)).toBe('["copy"]');
  chmodSync(folder, 0o500);
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_READ_ONLY ${folder}: `);
  chmodSync(folder, 0o700);
  expect(outcome(folder)).toBe('["copy"]');
});

test.each([
  ["alone", ["checkpoint.lock"]],
  ["beside a log that holds commits", ["checkpoint.lock", "checkpoint.db-wal"]],
])("an empty file %s is damaged, not new: nothing of it is taken or changed", async (_, kept) => {
  const folder = await killed();
  const file = join(folder, "checkpoint.db");
  for (const name of names) if (!kept.includes(name)) rmSync(join(folder, name));
  writeFileSync(file, "");
  if (isRoot) chownSync(file, nobody, nobody);
  const sizes = () => readdirSync(folder).map((name) => [name, statSync(join(folder, name)).size]);
  const before = sizes();
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_CORRUPT ${file}: it is empty`);
  expect(sizes()).toEqual(before);
});

test("what a store makes is its owner's alone, in whosever folder it is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const store = new Checkpoint(new SqliteJournal({ folder }));
  await store.openView("copy", "settings", "/ConfigMap");
  const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]);
  await store.close(true);
  expect(modes).toEqual(names.map((name) => [name, 0o600]));
});

test("a link leads to where the positions are, before they are made and after", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [data, volume] = [join(folder, "data"), join(folder, "volume")];
  const real = join(folder, "below/real");
  mkdirSync(real, { recursive: true });
  mkdirSync(volume);
  symlinkSync(real, data);
  symlinkSync("../../volume/positions.db", join(data, "checkpoint.db"));
  const first = new Checkpoint(new SqliteJournal({ folder: data }));
  await first.openView("copy", "settings", "/ConfigMap");
  expect(readdirSync(volume)).toEqual(["positions.db", "positions.db-shm", "positions.db-wal"]);
  await first.close(true);
  const second = new Checkpoint(new SqliteJournal({ folder: data }));
  expect(await second.views()).toHaveLength(1);
  await second.close(true);
  writeFileSync(join(volume, "positions.db"), "");
  expect(await attempt(() => new Checkpoint(new SqliteJournal({ folder: data })))).toBe(true);
});

test("a file that cannot be seen at the end is closed as well as any, and not taken for gone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [data, hidden] = [join(folder, "data"), join(folder, "hidden")];
  const store = new Checkpoint(new SqliteJournal({ folder: data }));
  renameSync(data, hidden);
  symlinkSync("data", data);
  await store.close(true);
  const next = new Checkpoint(new SqliteJournal({ folder: hidden }));
  expect(next.previousEnd).toBe("clean");
  await next.close(true);
});

test("a log whose file is gone is never read into a new one", async () => {
  const folder = await killed();
  const file = join(folder, "checkpoint.db");
  rmSync(file);
  const before = readdirSync(folder);
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_CORRUPT ${file}-wal: it is the log of a file that is not there`);
  expect(readdirSync(folder)).toEqual(before);
  rmSync(`${file}-wal`);
  expect(outcome(folder)).toBe("[]");
});

test("a first start that ends amid its work leaves no file, or one that is not empty and is new", async () => {
  const made = mkdtempSync(join(tmpdir(), "watchfire-files-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  const { exec } = DatabaseSync.prototype;
  let left = 0;
  const spy = vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql: string) {
    if (left-- === 0) throw new Error("the process ends");
    exec.call(this, sql);
  });
  onTestFinished(() => spy.mockRestore());
  let ended = true;
  for (let statements = 0; ended; statements++) {
    const folder = join(made, String(statements));
    const begin = (after: number) =>
      attempt(() => {
        left = after;
        const store = new Checkpoint(new SqliteJournal({ folder }));
        left = never;
        return store;
      });
    ended = await begin(statements);
    expect(statSync(join(folder, "checkpoint.db"), { throwIfNoEntry: false })?.size).not.toBe(0);
    if (ended) expect(await begin(never)).toBe(false);
  }
});

test.runIf(isRoot)("a lock that is another user's is named, whatever its mode", async () => {
  const folder = await killed();
  const lock = join(folder, "checkpoint.lock");
  chownSync(lock, 0, 0);
  chmodSync(lock, 0o666);
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_READ_ONLY ${lock}: `);
  rmSync(lock);
  mkdirSync(lock);
  expect(outcome(folder)).toContain(`WF_CHECKPOINT_READ_ONLY ${lock}: `);
});
