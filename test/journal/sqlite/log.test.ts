import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Clock } from "../../../runtime/base/clock.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import { SqliteLog } from "../../../runtime/journal/sqlite/log.ts";
import { copyProgram, logLengthOf } from "../../../runtime/journal/sqlite/log-thread.ts";
import { until } from "../../tools/until.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { spilledEvent } from "../store-contract.ts";

const mebibyte = 1024 * 1024;
/** Length of the log's header, before its first frame (SQLite's file format, "The Write-Ahead Log"). */
const logHeaderBytes = 32;

/** The target of a link; `undefined` if the link is gone. */
function readlink(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

/** A store with a log limit of 1 MiB, and helpers. */
class Fixture {
  readonly file: string;
  readonly store: Checkpoint<SqliteJournal>;
  private next = 1;
  private view = 0;

  private constructor(folder: string, clock?: Clock) {
    this.file = join(folder, "checkpoint.db");
    this.store = new Checkpoint(
      new SqliteJournal({ folder, bootId: "boot-1", room: () => 8 * mebibyte, ...(clock && { clock }) }),
    );
  }

  static async open(folder = mkdtempSync(join(tmpdir(), "watchfire-log-")), clock?: Clock): Promise<Fixture> {
    const it = new Fixture(folder, clock);
    onTestFinished(async () => {
      await it.store.close(false).catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    });
    it.view = (await it.store.openView("copy", "settings", "/ConfigMap")).id;
    return it;
  }

  /** Commits one event and removes the previous one, so that the file does not grow. */
  async commit(bytes = mebibyte / 16): Promise<void> {
    const sequence = this.next++;
    const spill = [spilledEvent(this.view, sequence, { body: Buffer.alloc(bytes, sequence) })];
    await this.store.commit({ ...emptyBatch, spill, unspill: [{ function: "copy", sequence: sequence - 1 }] });
  }

  async fill(bytes: number): Promise<void> {
    for (let written = 0; written < bytes; written += mebibyte / 16) await this.commit();
  }

  /** Number of this process's connections that have the log open. */
  get connections(): number {
    const open = readdirSync("/proc/self/fd").map((fd) => readlink(`/proc/self/fd/${fd}`));
    return open.filter((file) => file === `${this.file}-wal`).length;
  }

  get logBytes(): number {
    return statSync(`${this.file}-wal`).size;
  }

  async sequences(): Promise<number[]> {
    return [...(await this.store.spillHeaders("copy"))].map(({ sequence }) => sequence);
  }

  get last(): number {
    return this.next - 1;
  }

  /** Another connection, like that of a tool that inspects the file. */
  other(): DatabaseSync {
    const db = new DatabaseSync(this.file);
    onTestFinished(() => {
      if (db.isOpen) db.close();
    });
    return db;
  }
}

/** A log of 1,000 bytes whose copies end when the test says so. */
class Copies {
  readonly log: SqliteLog;
  /** Its bytes. */
  bytes = 0;
  private thread: Worker | undefined;

  /** @param known whether SQLite counts it */
  constructor(known = true) {
    const waiting = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", (message) => {
        if (message === undefined) parentPort.close();
        else if (!("bytes" in message)) parentPort.postMessage(message);
      });`;
    const begin = () => {
      this.thread = new Worker(waiting, { eval: true });
      return this.thread;
    };
    this.log = new SqliteLog("", () => (known ? this.bytes : undefined), begin);
    this.log.limit = 1000;
    onTestFinished(async () => {
      await this.end();
      await this.log.close();
    });
  }

  /** Commits so many bytes, estimated as `guess`. */
  commit(bytes: number, guess = bytes): void {
    this.bytes += bytes;
    this.log.wrote(guess);
  }

  /** Commits until a copy starts. Returns the bytes that the log then has. */
  fill(bytes = 10, guess = bytes): number {
    for (let most = 1000; !this.log.copied; most--) {
      expect(most).toBeGreaterThan(0);
      this.commit(bytes, guess);
    }
    return this.bytes;
  }

  async end(): Promise<void> {
    if (this.log.copied) this.thread?.postMessage({ copied: this.bytes });
    this.bytes = 0;
    await this.log.copied;
  }

  /** A reader still uses the replaced part of the log, so the copy ends and the log does not restart. */
  async endHeldBack(): Promise<void> {
    this.thread?.postMessage({});
    await this.log.copied;
  }
}

describe("the log", () => {
  it.each([0.35, 1, 5])(
    "begins to be copied at half of its share where what is written is taken for %s of that",
    (share) => {
      const begun = new Copies().fill(10, 10 * share);
      expect(begun).toBeGreaterThan(450);
      expect(begun).toBeLessThan(650);
    },
  );

  it("begins to be copied at half of its share by the guess, for as long as nobody counts it", async () => {
    const copies = new Copies(false);
    for (let n = 0; n < 9; n++) {
      expect(copies.fill()).toBe(510);
      await copies.end();
    }
  });

  it("leaves twice the room that the last copy needed, and little by little less where it needed none", async () => {
    const copies = new Copies();
    const left: number[] = [];
    for (let quiet = 0; quiet < 12; quiet++) {
      left.push(1000 - copies.fill(1));
      await copies.end();
    }
    for (const [n, now] of left.slice(1).entries()) {
      expect(now).toBeLessThanOrEqual(left[n] ?? 0);
      expect(now).toBeGreaterThan(0.8 * (left[n] ?? 0));
    }
    expect(left[0]).toBe(499);
    expect(left.at(-1)).toBe(149);
    copies.fill();
    copies.commit(300);
    await copies.end();
    expect(1000 - copies.fill(1)).toBe(599);
    copies.commit(600);
    await copies.end();
    // A copy that restarted again and again would never finish.
    expect(1000 - copies.fill(1)).toBe(749);
  });

  it("leaves more room after a copy for which a commit had to wait, however little was written meanwhile", async () => {
    const copies = new Copies();
    const before = 1000 - copies.fill(1);
    const room = copies.log.room();
    await copies.end();
    await room;
    expect(1000 - copies.fill(1)).toBeGreaterThan(before + 200);
  });

  it("that a reader holds back is copied again after an eighth of its share, so that commits go on until it is full", async () => {
    const copies = new Copies();
    const begun = copies.fill(1);
    for (let held = 1; held < 4; held++) {
      await copies.endHeldBack();
      expect(copies.fill(1)).toBe(begun + held * 126);
    }
    await copies.end();
    expect(copies.fill(1)).toBeLessThan(begun + 126);
  });

  it("is copied at its share again after a time without one", async () => {
    const copies = new Copies();
    for (const none of [0, Number.NaN]) {
      copies.log.limit = none;
      copies.log.copy();
      copies.commit(10);
      await copies.end();
    }
    copies.log.limit = 1000;
    expect(copies.fill()).toBe(510);
  });

  it("keeps within its share also in a file of other pages, of which a commit writes more than is guessed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "watchfire-log-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    await new Checkpoint(new SqliteJournal({ folder, bootId: "boot-1" })).close(true);
    const db = new DatabaseSync(join(folder, "checkpoint.db"));
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM");
    db.close();
    const it = await Fixture.open(folder);
    let most = 0;
    for (let n = 0; n < 1500; n++) {
      await it.commit(2500);
      most = Math.max(most, it.logBytes);
    }
    expect(most).toBeLessThan(1.3 * mebibyte);
  });

  it("is counted by SQLite to the byte, and that copies nothing", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 8);
    const length = logLengthOf(it.other());
    const before = statSync(it.file).size;
    expect(length()).toBe(it.logBytes - logHeaderBytes);
    expect(statSync(it.file).size).toBe(before);
  });

  it("is counted to the byte as well by the thread that copies it", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 8);
    const before = it.logBytes;
    const thread = new Worker(copyProgram, { eval: true, workerData: { file: it.file } });
    onTestFinished(async () => void (await thread.terminate()));
    thread.postMessage({ bytes: mebibyte });
    expect(await once(thread, "message")).toEqual([{ copied: before - logHeaderBytes }]);
  });

  it("is not counted within a transaction, nor once the file is closed", async () => {
    const db = (await Fixture.open()).other();
    const length = logLengthOf(db);
    expect(length()).toBeGreaterThan(0);
    db.exec("BEGIN; SELECT count(*) FROM spill");
    expect(length()).toBeUndefined();
    db.exec("COMMIT");
    db.close();
    expect(length()).toBeUndefined();
  });

  it("is not counted by a SQLite that would copy it instead", () => {
    const asked: string[] = [];
    const prepare = (sql: string) => {
      asked.push(sql);
      return { get: () => ({ version: "3.50.4" }) };
    };
    expect(logLengthOf({ prepare } as unknown as DatabaseSync)()).toBeUndefined();
    expect(asked.join()).not.toContain("wal_checkpoint");
  });

  it("keeps within its share however much is committed, and what was committed is there", async () => {
    const it = await Fixture.open();
    let most = 0;
    for (let n = 0; n < 40; n++) {
      await it.fill(mebibyte / 4);
      most = Math.max(most, it.logBytes);
    }
    // A commit that finds room may exceed it alone.
    expect(most).toBeLessThan(1.5 * mebibyte);
    expect(await it.sequences()).toEqual([it.last]);
  });

  it("is copied while nobody commits and nobody closes the store: a power loss then takes nothing that it had", async () => {
    const it = await Fixture.open();
    await it.fill(0.75 * mebibyte);
    const before = it.last;
    const left = mkdtempSync(join(tmpdir(), "watchfire-left-"));
    onTestFinished(() => rmSync(left, { recursive: true, force: true }));
    await until("the file alone has it", 10_000, async () => {
      copyFileSync(it.file, join(left, "checkpoint.db"));
      const db = new DatabaseSync(join(left, "checkpoint.db"));
      const rows = db.prepare("SELECT sequence FROM spill").all();
      db.close();
      return rows[0]?.sequence === before;
    });
  });

  it("is copied by another thread where one has ended, in the middle of a copy or while it was asked nothing", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 4);
    const threads: Worker[] = [];
    const log = new SqliteLog(
      it.file,
      () => undefined,
      (file) => {
        const thread = new Worker(copyProgram, { eval: true, workerData: { file } });
        threads.push(thread);
        return thread;
      },
    );
    onTestFinished(() => log.close());
    log.limit = mebibyte;
    await log.copyAll();
    await threads[0]?.terminate();
    await log.room();
    log.copy();
    await threads[1]?.terminate();
    await log.copied;
    await log.room();
    expect(threads).toHaveLength(3);
  });

  it("is copied by a thread that ends once there is nothing to copy, and by another later", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 4);
    const threads: Worker[] = [];
    const begin = (file: string) => {
      const thread = new Worker(copyProgram, { eval: true, workerData: { file } });
      threads.push(thread);
      return thread;
    };
    const log = new SqliteLog(it.file, () => undefined, begin);
    onTestFinished(() => log.close());
    log.limit = mebibyte;
    for (let copies = 0; copies < 4; copies++) {
      await log.copyAll();
      log.look();
      log.look();
    }
    expect(threads).toHaveLength(1);
    expect(log.isRunning).toBe(true);
    log.look();
    await until("the thread has ended", 10_000, async () => !log.isRunning);
    log.look();
    await log.copyAll();
    expect(threads).toHaveLength(2);
  });

  it("is held by the store alone once nothing was written for a while", async () => {
    const clock = new VirtualClock();
    const it = await Fixture.open(undefined, clock);
    await it.fill(2 * mebibyte);
    await until("the thread has copied", 10_000, async () => it.connections === 2);
    await clock.advance(60_000);
    await until("the thread has ended", 10_000, async () => {
      await clock.advance(5_000);
      return it.connections === 1;
    });
    await it.fill(2 * mebibyte);
  });

  it("keeps its thread for as long as a copy takes", async () => {
    const copies = new Copies();
    copies.fill();
    for (let looks = 0; looks < 10; looks++) copies.log.look();
    await copies.end();
    for (let looks = 0; looks < 2; looks++) copies.log.look();
    expect(copies.log.isRunning).toBe(true);
  });

  it("is not closed before a thread that was told to end has let go of the file", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 4);
    const released = new Int32Array(new SharedArrayBuffer(4));
    const lingering = `const { parentPort, workerData } = require("node:worker_threads");
      parentPort.on("message", (request) => {
        parentPort.postMessage({});
        if (request !== undefined) return;
        Atomics.wait(workerData, 0, 0);
        parentPort.close();
      });`;
    const first = new Worker(lingering, { eval: true, workerData: released });
    const second = new Worker(lingering, { eval: true, workerData: new Int32Array(new SharedArrayBuffer(4)).fill(1) });
    const threads = [first, second];
    const log = new SqliteLog(
      it.file,
      () => undefined,
      () => threads.shift() ?? first,
    );
    log.limit = mebibyte;
    await log.copyAll();
    const told = once(first, "message");
    for (let looks = 0; looks < 3; looks++) log.look();
    await told;
    expect(log.isRunning).toBe(true);
    await log.copyAll();
    const secondEnd = once(second, "exit");
    let isClosed = false;
    const closed = log.close().then(() => {
      isClosed = true;
    });
    await secondEnd;
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    Atomics.store(released, 0, 1);
    Atomics.notify(released, 0);
    await closed;
    expect(log.isRunning).toBe(false);
  });

  it("is closed also where its thread fails at its end", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 4);
    const failing = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", (request) => {
        if (request === undefined) throw new Error("the disk is gone");
        parentPort.postMessage({});
      });`;
    const log = new SqliteLog(
      it.file,
      () => undefined,
      () => new Worker(failing, { eval: true }),
    );
    log.limit = mebibyte;
    await log.copyAll();
    expect(log.isRunning).toBe(true);
    await log.close();
    expect(log.isRunning).toBe(false);
  });

  it("fails no commit that finds the file locked while it is copied", async () => {
    const it = await Fixture.open();
    const other = it.other();
    other.exec("PRAGMA busy_timeout = 5000");
    await it.fill(0.75 * mebibyte);
    // In the turn of the commit that started the copy, whose end is reported in a later turn.
    other.exec("BEGIN IMMEDIATE");
    const waiting = it.commit();
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("ROLLBACK");
    await waiting;
    expect(await it.sequences()).toEqual([it.last]);
  });

  it("that cannot be copied, as somebody reads what it has replaced, makes commits wait once it is full", async () => {
    const it = await Fixture.open();
    const reader = it.other();
    reader.exec("BEGIN; SELECT count(*) FROM spill");
    const all = it.fill(4 * mebibyte);
    await until("the log is full", 10_000, async () => it.logBytes > mebibyte);
    const full = it.logBytes;
    reader.exec("COMMIT");
    reader.close();
    await all;
    expect(full).toBeLessThan(1.5 * mebibyte);
    expect(await it.sequences()).toEqual([it.last]);
  });

  it("that cannot be copied because of a fault tells it by its code once it is full, and of nothing once it can", async () => {
    const it = await Fixture.open();
    renameSync(it.file, `${it.file}.aside`);
    mkdirSync(it.file);
    await expect(it.fill(4 * mebibyte)).rejects.toMatchObject({ code: "WF_CHECKPOINT_READ_ONLY" });
    expect(it.logBytes).toBeLessThan(1.5 * mebibyte);
    rmdirSync(it.file);
    renameSync(`${it.file}.aside`, it.file);
    await it.fill(2 * mebibyte);
    expect(it.logBytes).toBeLessThan(1.5 * mebibyte);
  });
});
