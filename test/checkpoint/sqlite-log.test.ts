import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { emptyBatch } from "../../runtime/checkpoint/batch.ts";
import { SqliteStore } from "../../runtime/checkpoint/sqlite.ts";
import { SqliteLog } from "../../runtime/checkpoint/sqlite-log.ts";
import { logLengthOf } from "../../runtime/checkpoint/sqlite-log-length.ts";
import { copyProgram } from "../../runtime/checkpoint/sqlite-log-thread.ts";
import { until } from "../tools/until.ts";
import { spilledEvent } from "./store-contract.ts";

const mebibyte = 1024 * 1024;

/** A store whose log may take 1 MiB, and what its tests need of it. */
class Fixture {
  readonly file: string;
  readonly store: SqliteStore;
  private next = 1;
  private view = 0;

  private constructor(folder: string) {
    this.file = join(folder, "checkpoint.db");
    this.store = new SqliteStore({ folder, bootId: "boot-1", room: () => 8 * mebibyte });
  }

  static async open(): Promise<Fixture> {
    const folder = mkdtempSync(join(tmpdir(), "watchfire-log-"));
    const it = new Fixture(folder);
    onTestFinished(async () => {
      await it.store.close(false).catch(() => {});
      rmSync(folder, { recursive: true, force: true });
    });
    it.view = (await it.store.openView("copy", "settings", "/ConfigMap")).id;
    return it;
  }

  /** One event of 64 KiB, and the one before it goes: the file needs no more room. */
  async commit(): Promise<void> {
    const sequence = this.next++;
    const spill = [spilledEvent(this.view, sequence, { body: Buffer.alloc(mebibyte / 16, sequence) })];
    await this.store.commit({ ...emptyBatch, spill, unspill: [{ function: "copy", sequence: sequence - 1 }] });
  }

  async fill(bytes: number): Promise<void> {
    for (let written = 0; written < bytes; written += mebibyte / 16) await this.commit();
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

  /** Another connection, as of somebody who looks into the file. */
  other(): DatabaseSync {
    const db = new DatabaseSync(this.file);
    onTestFinished(() => {
      if (db.isOpen) db.close();
    });
    return db;
  }
}

/** A log of 100 bytes whose copies end when the test says so, and what SQLite would count in it. */
class Copies {
  counted: number | undefined;
  readonly log: SqliteLog;
  private thread: Worker | undefined;

  constructor() {
    const waiting = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", (message) => {
        if (message === undefined) parentPort.close();
        if (message === "end") parentPort.postMessage({ restarted: true });
      });`;
    const begin = () => {
      this.thread = new Worker(waiting, { eval: true });
      return this.thread;
    };
    this.log = new SqliteLog("", () => this.counted, begin);
    this.log.limit = 100;
    onTestFinished(async () => {
      await this.end();
      await this.log.close();
    });
  }

  /** Writes byte by byte until a copy begins; gives how many there were. */
  write(): number {
    let written = 0;
    for (; !this.log.copied; written++) this.log.wrote(1);
    return written;
  }

  async end(): Promise<void> {
    if (this.log.copied) this.thread?.postMessage("end");
    await this.log.copied;
  }
}

describe("the log", () => {
  it("begins to be copied by what SQLite counts in it, and by a guess only where that is unknown", async () => {
    const known = new Copies();
    known.counted = 30;
    known.log.wrote(99);
    expect(known.log.copied).toBeUndefined();
    expect(known.log.isFull).toBe(false);
    known.counted = 60;
    known.log.wrote(30);
    expect(known.log.copied).toBeDefined();
    const unknown = new Copies();
    expect(unknown.write()).toBe(51);
  });

  it("leaves twice the room that the last copy needed, and little by little less where it needed none", async () => {
    const copies = new Copies();
    const begins = [copies.write()];
    for (let quiet = 0; quiet < 9; quiet++) {
      await copies.end();
      begins.push(copies.write());
    }
    expect(begins).toEqual(begins.toSorted((a, b) => a - b));
    const left = begins.map((begin) => 101 - begin);
    for (const [n, now] of left.slice(1).entries()) expect(now).toBeGreaterThan(0.75 * (left[n] ?? 0) - 1);
    expect(begins[0]).toBe(51);
    expect(begins.at(-1)).toBe(86);
    copies.log.wrote(30);
    await copies.end();
    // What was written during the copy may be in the log that begins.
    expect(30 + copies.write()).toBe(41);
  });

  it("is counted by SQLite to the byte, and that copies nothing", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 8);
    const length = logLengthOf(it.other());
    const before = statSync(it.file).size;
    const walHeaderBytes = 32;
    expect(length()).toBe(it.logBytes - walHeaderBytes);
    expect(statSync(it.file).size).toBe(before);
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
    // A commit that finds room may go beyond it by itself.
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

  it("is closed also where its thread fails at its end", async () => {
    const it = await Fixture.open();
    await it.fill(mebibyte / 4);
    const failing = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", (request) => {
        if (request === undefined) throw new Error("the disk is gone");
        parentPort.postMessage({ restarted: false });
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
    // In the turn of the commit that began the copy, whose end is heard of in a later one.
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
