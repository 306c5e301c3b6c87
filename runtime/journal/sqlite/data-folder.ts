import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { sync } from "../../base/folder.ts";
import { Checkpoint } from "../checkpoint.ts";
import { elsewhere, type PreviousEnd } from "../journal.ts";
import { SqliteJournal } from "./journal.ts";
import { SqliteLock } from "./lock.ts";

/** The data folder, with its file in use or set aside. */
export class DataFolder {
  private readonly data: string;
  private readonly file: string;
  private readonly aside: string;
  /** Marks the file as a copy of positions that still count where they were copied from. */
  private readonly copied: string;
  private readonly clock: Clock;

  constructor(data: string, clock: Clock) {
    this.data = data;
    this.clock = clock;
    this.file = join(data, "checkpoint.db");
    this.aside = join(data, "checkpoint.moved.db");
    this.copied = join(data, "checkpoint.copied");
  }

  get holdsPositions(): boolean {
    return existsSync(this.file);
  }

  /** Whether its positions were copied from elsewhere, and nobody has gone on from here. */
  get isCopy(): boolean {
    return this.holdsPositions && existsSync(this.copied);
  }

  /** @throws WatchfireError WF_CHECKPOINT_ELSEWHERE where its positions were carried away */
  open(): Checkpoint {
    if (!this.holdsPositions && existsSync(this.aside))
      throw elsewhere("the folder's positions were moved into Secrets, or onto NATS");
    const store = new Checkpoint(new SqliteJournal({ folder: this.data, clock: this.clock }));
    rmSync(this.copied, { force: true });
    return store;
  }

  /** Renames the file, since its positions are in another journal now: nobody is to go on from here. */
  setAside(): void {
    // The file first: without its log it would count, with commits missing.
    for (const suffix of ["", "-wal", "-shm"])
      if (existsSync(this.file + suffix)) renameSync(this.file + suffix, this.aside + suffix);
    rmSync(this.copied, { force: true });
  }

  /** Sets the file aside, unless a runtime uses the folder. Returns whether it did. */
  retire(): boolean {
    if (!this.holdsPositions) return false;
    const lock = this.lock();
    if (lock) this.setAside();
    lock?.release();
    return lock !== undefined;
  }

  private lock(): SqliteLock | undefined {
    try {
      return new SqliteLock(this.data);
    } catch {
      return undefined;
    }
  }

  /** Replaces the file, in one step, with positions that `copy` writes. `end`: how the run that left them had ended. */
  async fill(end: PreviousEnd, copy: (to: Checkpoint) => Promise<void>): Promise<void> {
    const incoming = join(this.data, "incoming");
    rmSync(incoming, { recursive: true, force: true });
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    // Unless the other ended clean, the next to open takes this name of a boot for a power loss.
    const to = new Checkpoint(new SqliteJournal({ folder: incoming, bootId: "carried over" }));
    try {
      await copy(to);
    } finally {
      await to.close(end === "clean");
    }
    writeFileSync(this.copied, "");
    // The other store is about to forget what is here.
    sync(this.data);
    // They belong to the file before, which counts for nothing any more.
    for (const suffix of ["-wal", "-shm"]) rmSync(`${this.file}${suffix}`, { force: true });
    renameSync(join(incoming, "checkpoint.db"), this.file);
    sync(this.data);
    for (const left of [incoming, this.aside, `${this.aside}-wal`, `${this.aside}-shm`])
      rmSync(left, { recursive: true, force: true });
  }
}
