import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import { until } from "../../tools/until.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { letter, spilledEvent, storeContract } from "../store-contract.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "watchfire-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return join(made, "data");
}

function open(at: string, bootId = "boot-1"): Checkpoint<SqliteJournal> {
  const store = new Checkpoint(new SqliteJournal({ folder: at, bootId }));
  onTestFinished(() => store.close(false).catch(() => {}));
  return store;
}

const failure = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

/** A process that opens the folder, commits one checkpoint, and then waits to be killed. */
async function holder(at: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [resolve(import.meta.dirname, "holder.ts"), at], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

describe("the store in SQLite", () => {
  storeContract(async () => {
    const at = folder();
    return {
      open: () => open(at),
      // The lock ends with the process; within this process, an unclean close stands for that.
      kill: (store) => store.close(false),
    };
  });

  it.each([
    ["removed", () => {}],
    ["replaced by another", (at: string) => void open(at)],
  ])(
    "once its folder is %s it takes no commit, looking at the disk harms nobody, and its end tells",
    async (_, then) => {
      const at = folder();
      const clock = new VirtualClock();
      const store = new Checkpoint(new SqliteJournal({ folder: at, bootId: "boot-1", clock }));
      onTestFinished(() => store.close(false).catch(() => {}));
      await store.commit(emptyBatch);
      rmSync(at, { recursive: true });
      then(at);
      await clock.advance(60_000);
      await expect(store.commit(emptyBatch)).rejects.toMatchObject({ code: "WF_CHECKPOINT_GONE", blame: "user" });
      await expect(store.close(true)).rejects.toMatchObject({ code: "WF_CHECKPOINT_GONE" });
    },
  );

  it("a second runtime is refused while the first lives, and let in once it was killed", async () => {
    const at = folder();
    const first = await holder(at);
    expect(failure(() => open(at))).toMatchObject({ code: "WF_CHECKPOINT_LOCKED" });
    first.kill("SIGKILL");
    await once(first, "exit");
    const second = new Checkpoint(new SqliteJournal({ folder: at }));
    expect(second.previousEnd).toBe("killed");
    expect((await second.views("copy"))[0]?.cursors[0]?.lowWaterMark).toBe("41");
    await second.close(true);
  });

  it("ends in good order also where only the thread that copies its log is left", async () => {
    const at = folder();
    const child = spawn(process.execPath, [resolve(import.meta.dirname, "closer.ts"), at], { stdio: "inherit" });
    await once(child, "exit");
    expect([child.exitCode, open(at).previousEnd]).toEqual([0, "clean"]);
  });

  it("an unclean end on an earlier boot of the machine counts as a power loss, a clean one does not", async () => {
    const at = folder();
    await open(at, "boot-1").close(false);
    const second = open(at, "boot-2");
    expect(second.previousEnd).toBe("power-loss");
    await second.close(true);
    expect(open(at, "boot-3").previousEnd).toBe("clean");
  });

  it("a power loss is over at the next clean end, not at a kill", async () => {
    const at = folder();
    await open(at, "boot-1").close(false);
    const ends: string[] = [];
    for (const clean of [false, false, true, false, true]) {
      const store = open(at, "boot-2");
      ends.push(store.previousEnd);
      await store.close(clean);
    }
    expect(ends).toEqual(["power-loss", "power-loss", "power-loss", "clean", "killed"]);
  });

  it("a command between two runs needs a store, and leaves the note of how the last run ended", async () => {
    const at = folder();
    expect(failure(() => new Checkpoint(new SqliteJournal({ folder: at, maintenance: true })))).toMatchObject({
      code: "WF_CHECKPOINT_MISSING",
    });
    await open(at, "boot-1").close(false);
    await new Checkpoint(new SqliteJournal({ folder: at, maintenance: true, bootId: "boot-2" })).close(true);
    expect(open(at, "boot-2").previousEnd).toBe("power-loss");
  });

  it("only its owner may read it", async () => {
    const at = folder();
    open(at);
    expect([statSync(at).mode & 0o777, statSync(join(at, "checkpoint.db")).mode & 0o777]).toEqual([0o700, 0o600]);
  });

  it("a file of a newer version, of another program or of garbage is refused and left as it was", async () => {
    const spoil: [string, (file: string) => void][] = [
      ["WF_CHECKPOINT_NEWER_SCHEMA", (file) => sql(file, "PRAGMA user_version = 99")],
      ["WF_CHECKPOINT_CORRUPT", (file) => sql(file, "PRAGMA application_id = 7")],
      ["WF_CHECKPOINT_CORRUPT", (file) => writeFileSync(file, "not a database, but long enough to be read as one")],
      [
        "WF_CHECKPOINT_CORRUPT",
        (file) => {
          rmSync(file);
          sql(file, "CREATE TABLE another_program (row TEXT)");
          chmodSync(file, 0o640);
        },
      ],
    ];
    for (const [code, damage] of spoil) {
      const at = folder();
      const file = join(at, "checkpoint.db");
      await open(at).close(true);
      damage(file);
      const before = readFileSync(file);
      const { mode } = statSync(file);
      expect(failure(() => open(at))).toMatchObject({ code });
      expect(readFileSync(file).equals(before)).toBe(true);
      expect(statSync(file).mode).toBe(mode);
    }
  });

  it("a disk that does not say how large it is for a while ends no process, and is asked again", async () => {
    const clock = new VirtualClock();
    let asked = 0;
    const room = () => {
      if (asked++ > 0) throw Object.assign(new Error("EIO: i/o error, statfs"), { code: "EIO" });
      return 64 * 1024 * 1024;
    };
    const store = new Checkpoint(new SqliteJournal({ folder: folder(), bootId: "boot-1", clock, room }));
    onTestFinished(() => store.close(false));
    await clock.advance(15_000);
    expect(asked).toBe(4);
    expect(store.spillLimit).toBe(8 * 1024 * 1024);
  });

  it.each([
    ["what had begun", "UPDATE journal SET started = 'torn'", (store: Checkpoint<SqliteJournal>) => store.begun()],
    ["what waits", "UPDATE spill SET header = '{}'", (store: Checkpoint<SqliteJournal>) => store.spilled("copy", 0, 9)],
    ["dead letters", "UPDATE dead_letter SET header = '{}'", (store: Checkpoint<SqliteJournal>) => store.deadLetters()],
    [
      "a dead letter",
      "UPDATE dead_letter SET header = '{}'",
      (store: Checkpoint<SqliteJournal>) => store.deadLetter("1"),
    ],
    ["known objects", "UPDATE known SET keys = '7'", (store: Checkpoint<SqliteJournal>) => store.known(1, () => {})],
  ])("rows of %s that nobody can read are told as damage", async (_what, damage, read) => {
    const at = folder();
    const store = open(at);
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const started = [
      { view: id, key: "a/x", id: "1", resourceVersion: resourceVersion("1"), type: "Added", attempt: 1 },
    ] as const;
    const state = {
      uid: "u",
      resourceVersion: resourceVersion("1"),
      hash: "",
      deleted: false,
      matched: true,
      body: undefined,
    };
    await store.commit({
      ...emptyBatch,
      known: [{ view: id, key: "a/x", state }],
      journal: [{ id: 1, started }],
      spill: [spilledEvent(id, 1)],
      deadLetters: [letter(id)],
    });
    await store.close(true);
    sql(join(at, "checkpoint.db"), damage);
    const readAgain = async () => read(open(at));
    await expect(readAgain()).rejects.toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
  });

  it("a write that the machine's end tore is gone whole, and what was written before it is there", async () => {
    const at = folder();
    const store = open(at);
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const cursor = { view: id, namespace: "", selection: "all", epoch: 0, initial: false };
    const wal = join(at, "checkpoint.db-wal");
    const sizes: number[] = [];
    for (const lowWaterMark of ["10", "20", "30"]) {
      const spill = [spilledEvent(id, Number(lowWaterMark))];
      await store.commit({
        ...emptyBatch,
        cursors: [{ ...cursor, lowWaterMark: resourceVersion(lowWaterMark) }],
        spill,
      });
      sizes.push(statSync(wal).size);
    }
    const [, second = 0, third = 0] = sizes;
    // From the end of the second commit to just before that of the third.
    for (let size = second; size < third; size += 511) {
      const torn = folder();
      mkdirSync(torn);
      copyFileSync(join(at, "checkpoint.db"), join(torn, "checkpoint.db"));
      writeFileSync(join(torn, "checkpoint.db-wal"), readFileSync(wal).subarray(0, size));
      const after = open(torn, "boot-2");
      expect(after.previousEnd).toBe("power-loss");
      expect((await after.views("copy"))[0]?.cursors[0]?.lowWaterMark).toBe("20");
      expect([...(await after.spillHeaders("copy"))].map(({ sequence }) => sequence)).toEqual([10, 20]);
    }
    expect(third - second).toBeGreaterThan(511);
  });

  it("a power loss is told as one even right after a start that followed a clean end", async () => {
    const at = folder();
    await open(at).close(true);
    const running = open(at);
    // Only the file survives for certain: the log of a start is copied into it and synced before anything runs.
    const left = folder();
    mkdirSync(left);
    copyFileSync(join(at, "checkpoint.db"), join(left, "checkpoint.db"));
    expect(running.previousEnd).toBe("clean");
    expect(open(left, "boot-2").previousEnd).toBe("power-loss");
  });

  it("one function's dead letters never take what another's keep, however many they are", async () => {
    // An eighth of it is for dead letters.
    const store = new Checkpoint(new SqliteJournal({ folder: folder(), room: () => 8_000_000 }));
    onTestFinished(() => store.close(false));
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const body = Buffer.alloc(100_000, "x");
    const of = (name: string) => ({ ...emptyBatch, deadLetters: [{ ...letter(id), function: name, body }] });
    await store.commit(of("modest"));
    await store.commit(of("modest"));
    for (let n = 0; n < 50; n++) await store.commit(of("greedy"));
    expect(store.deadLetterStock("modest")).toMatchObject({ count: 2, withoutBody: 0 });
    const { count, bytes } = store.deadLetterStock("greedy");
    expect([count, bytes < 800_000]).toEqual([50, true]);
  });

  it("gives the disk back what it needs no more, a little at a time, and its log keeps to its share", async () => {
    const [at, clock] = [folder(), new VirtualClock()];
    const store = new Checkpoint(new SqliteJournal({ folder: at, clock, room: () => 64 << 20 }));
    onTestFinished(() => store.close(false));
    await fillAndEmpty(store);
    const before = sizes(at);
    expect(before["checkpoint.db"]).toBeGreaterThan(30);
    // The thread that copies the log takes real time, independent of the clock.
    await until("the file and its log are cut", 15_000, async () => {
      await clock.advance(60_000);
      const { "checkpoint.db": file = 0, "checkpoint.db-wal": log = 0 } = sizes(at);
      return file < 10 && log <= 8;
    });
    expect([...(await store.spillHeaders("copy"))].map(({ sequence }) => sequence)).toEqual([5_000]);
  });

  it("rewrites a file of a version before, which cannot give anything back, at a start at which it is mostly empty", async () => {
    const at = folder();
    await open(at).close(true);
    sql(join(at, "checkpoint.db"), "PRAGMA auto_vacuum = NONE; VACUUM");
    const store = open(at);
    await fillAndEmpty(store);
    await store.close(true);
    expect(sizes(at)["checkpoint.db"]).toBeGreaterThan(30);
    const next = open(at);
    expect(sizes(at)["checkpoint.db"]).toBeLessThan(2);
    expect([next.previousEnd, [...(await next.spillHeaders("copy"))].length]).toEqual(["clean", 1]);
  });

  it("a file of version 1, which had bodies among what is known, is taken over with all it has", async () => {
    const at = folder();
    const store = open(at);
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const identity = { uid: "u", resourceVersion: resourceVersion("5"), hash: "h", deleted: false, matched: true };
    const known = ["a/x", "a/y"].map((key) => ({ view: id, key, state: { ...identity, body: undefined } }));
    await store.commit({ ...emptyBatch, known });
    await store.close(true);
    sql(
      join(at, "checkpoint.db"),
      `DROP TABLE body; ALTER TABLE known ADD COLUMN body BLOB; PRAGMA user_version = 1;
       UPDATE known SET body = CAST('{}' AS BLOB) WHERE key = 'a/x'`,
    );
    const next = open(at);
    expect(next.previousEnd).toBe("clean");
    expect(await next.body(id, "a/x")).toEqual({ bytes: Buffer.from("{}"), isOlder: false });
    expect(await next.body(id, "a/y")).toBeUndefined();
    const [write] = known;
    if (write)
      await next.commit({ ...emptyBatch, known: [{ ...write, state: { ...identity, body: Buffer.from("new") } }] });
    expect((await next.body(id, "a/x"))?.bytes.toString()).toBe("new");
  });

  it("keys that an older runtime left behind, when it wrote a later state, count no more", async () => {
    const at = folder();
    const store = open(at);
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const of = (version: string) => ({
      ...{ uid: "u", resourceVersion: resourceVersion(version), hash: "", deleted: false, matched: true },
      ...{ body: undefined, keys: ["a/shop"] },
    });
    const known = ["a/x", "a/y"].map((key) => ({ view: id, key, state: of("5") }));
    await store.commit({ ...emptyBatch, known });
    await store.close(true);
    sql(join(at, "checkpoint.db"), "UPDATE known SET resource_version = '6' WHERE key = 'a/x'");
    const found: unknown[] = [];
    const read = (next: ReturnType<typeof open>) => next.known(id, (_, { keys }) => void found.push(keys));
    const second = open(at);
    await read(second);
    await second.close(true);
    sql(join(at, "checkpoint.db"), "ALTER TABLE known DROP COLUMN keys");
    await read(open(at));
    expect(found).toEqual([undefined, ["a/shop"], undefined, undefined]);
  });

  it("a function whose positions are there is loaded without a write", async () => {
    const at = folder();
    const store = open(at);
    const { id } = await store.openView("f", "t", "v1/pods");
    const writer = new DatabaseSync(join(at, "checkpoint.db"));
    onTestFinished(() => writer.close());
    writer.exec("BEGIN IMMEDIATE");
    expect(await store.purge(1_000)).toBe(0);
    await store.limitDeadLetters("f", { maxCount: 10, maxBytes: 1_000 });
    expect((await store.openView("f", "t", "v1/pods")).id).toBe(id);
    await expect(store.openView("f", "other", "v1/pods")).rejects.toMatchObject({ code: "WF_CHECKPOINT_LOCKED" });
  });

  it("a folder that cannot be written is refused", async () => {
    const at = folder();
    await open(at).close(true);
    // Root may write anywhere, so in that case a file takes the folder's place.
    const blocked = process.getuid?.() === 0 ? join(at, "checkpoint.db", "data") : at;
    chmodSync(at, 0o500);
    onTestFinished(() => chmodSync(at, 0o700));
    expect(failure(() => open(blocked))).toMatchObject({ code: "WF_CHECKPOINT_READ_ONLY" });
  });

  it("what waits is counted one by one, however much it is", async () => {
    const store = open(folder());
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const spill = Array.from({ length: 1_000 }, (_, index) => spilledEvent(id, index + 1));
    await store.commit({ ...emptyBatch, spill });
    const parse = vi.spyOn(JSON, "parse");
    onTestFinished(() => parse.mockRestore());
    for (const { sequence } of await store.spillHeaders("copy")) expect(parse.mock.calls.length).toBe(sequence);
    expect(parse.mock.calls.length).toBe(1_000);
  });

  it("a batch that fails half-way leaves nothing behind", async () => {
    const store = open(folder());
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const unknownView = 999;
    const batch = { ...emptyBatch, spill: [spilledEvent(id, 1), spilledEvent(unknownView, 2)] };
    await expect(store.commit(batch)).rejects.toMatchObject({ code: "WF_CHECKPOINT_WRITE_FAILED" });
    expect([...(await store.spillHeaders("copy"))]).toEqual([]);
    await store.commit({ ...emptyBatch, spill: [spilledEvent(id, 1)] });
    expect([...(await store.spillHeaders("copy"))]).toHaveLength(1);
  });

  it("notes of much that waits that it is doubted without holding the event loop up", async () => {
    const store = open(folder());
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const spill = Array.from({ length: 5_001 }, (_, index) => spilledEvent(id, index + 1));
    await store.commit({ ...emptyBatch, spill });
    let isOver = false;
    const noting = store.markSpillPossiblyDelivered("copy").finally(() => {
      isOver = true;
    });
    let turns = 0;
    for (; !isOver; turns++) await nextTurn();
    await noting;
    expect(turns).toBeGreaterThan(5);
    expect([...(await store.spillHeaders("copy"))].filter(({ redelivered }) => redelivered)).toHaveLength(5_001);
  });
});

/** Fills the store with 40 MB of waiting events, and then removes them and adds one. */
async function fillAndEmpty(store: Checkpoint<SqliteJournal>): Promise<void> {
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  const body = Buffer.alloc(20_000, "x");
  for (let n = 1; n <= 2_000; n += 50) {
    const spill = Array.from({ length: 50 }, (_, index) => spilledEvent(id, n + index, { body }));
    await store.commit({ ...emptyBatch, spill });
  }
  const unspill = Array.from({ length: 2_000 }, (_, index) => ({ function: "copy", sequence: index + 1 }));
  await store.commit({ ...emptyBatch, unspill, spill: [spilledEvent(id, 5_000)] });
}

/** In MiB. */
const sizes = (at: string): Record<string, number> =>
  Object.fromEntries(readdirSync(at).map((file) => [file, statSync(join(at, file)).size / 2 ** 20]));

function sql(file: string, statement: string): void {
  const db = new DatabaseSync(file);
  db.exec(statement);
  db.close();
}
