import { copyFileSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { makeFolder, sync } from "../../base/folder.ts";
import { Checkpoint } from "../checkpoint.ts";
import { elsewhere, type PreviousEnd } from "../journal.ts";
import { isBusy } from "./fault.ts";
import { filesOf } from "./files.ts";
import { SqliteJournal } from "./journal.ts";
import { SqliteLock } from "./lock.ts";

/** The data folder, whose file is in use or set aside. */
export class DataFolder {
  private readonly data: string;
  private readonly file: string;
  private readonly aside: string;
  /** A file that marks the folder's checkpoints as a copy; the original is still the valid one. */
  private readonly copied: string;
  /** The file that a restored backup has replaced. */
  private readonly replaced: string;
  private readonly clock: Clock;

  constructor(data: string, clock: Clock) {
    this.data = data;
    this.clock = clock;
    this.file = join(data, "checkpoint.db");
    this.aside = join(data, "checkpoint.moved.db");
    this.copied = join(data, "checkpoint.copied");
    this.replaced = join(data, "checkpoint.replaced.db");
  }

  /** True if the folder's checkpoints were moved to another journal. */
  get wasMoved(): boolean {
    return !this.holdsPositions && existsSync(this.aside);
  }

  get holdsPositions(): boolean {
    return existsSync(this.file);
  }

  /** True if the checkpoints were copied here from another journal, and no runtime has opened them since. */
  get isCopy(): boolean {
    return this.holdsPositions && existsSync(this.copied);
  }

  /** @throws WatchfireError WF_CHECKPOINT_ELSEWHERE if the checkpoints were moved to another journal */
  open(): Checkpoint {
    if (this.wasMoved) throw elsewhere("the folder's checkpoints were moved into Secrets, or onto NATS");
    const store = new Checkpoint(new SqliteJournal({ folder: this.data, clock: this.clock }));
    rmSync(this.copied, { force: true });
    return store;
  }

  /** Renames the file after its checkpoints were moved to another journal, so that no runtime continues from it. */
  setAside(): void {
    // The file first: without its log it would be taken as valid although commits are missing.
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

  /** Atomically replaces the file with checkpoints that `copy` writes. `end`: how the run that wrote the originals ended. */
  async fill(end: PreviousEnd, copy: (to: Checkpoint) => Promise<void>): Promise<void> {
    const incoming = join(this.data, "incoming");
    rmSync(incoming, { recursive: true, force: true });
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    // Unless that end was clean, the next start sees a foreign boot id, and assumes a power loss.
    const to = new Checkpoint(new SqliteJournal({ folder: incoming, bootId: "carried over" }));
    try {
      await copy(to);
    } finally {
      await to.close(end === "clean");
    }
    writeFileSync(this.copied, "");
    // The other store deletes its checkpoints next.
    sync(this.data);
    // They belong to the previous file, which is no longer valid.
    for (const suffix of ["-wal", "-shm"]) rmSync(`${this.file}${suffix}`, { force: true });
    renameSync(join(incoming, "checkpoint.db"), this.file);
    sync(this.data);
    for (const left of [incoming, this.aside, `${this.aside}-wal`, `${this.aside}-shm`])
      rmSync(left, { recursive: true, force: true });
  }

  /**
   * Replaces the file by a backup, while no runtime uses the folder. `check` runs first, under the folder's lock. Returns the path
   * at which the previous file is kept, if there was one.
   * @throws WatchfireError WF_RESTORE_RUNNING; what `check` and `place` throw, and then nothing is replaced
   */
  replace(place: (to: string) => void, check: () => void): string | undefined {
    makeFolder(this.data, 0o700);
    const lock = this.lockToRestore();
    try {
      check();
      const incoming = join(this.data, "incoming");
      rmSync(incoming, { recursive: true, force: true });
      mkdirSync(incoming, { mode: 0o700 });
      const placed = join(incoming, "checkpoint.db");
      place(placed);
      const previous = this.holdsPositions ? this.keepPrevious() : undefined;
      // At every moment the folder has a file: a start without one would take all objects for new.
      renameSync(placed, this.file);
      sync(this.data);
      for (const left of [incoming, this.copied, ...filesOf(this.aside)])
        rmSync(left, { recursive: true, force: true });
      return previous;
    } finally {
      lock.release();
    }
  }

  private lockToRestore(): SqliteLock {
    try {
      return new SqliteLock(this.data);
    } catch (error) {
      if (!isBusy(error)) throw error;
      const what = "another process has the data folder open";
      throw new WatchfireError("WF_RESTORE_RUNNING", { what, place: { file: this.data }, cause: error });
    }
  }

  /** Adds a second name for the file, and renames its log, which must not be read into another file. */
  private keepPrevious(): string {
    const { file, replaced } = this;
    for (const left of filesOf(replaced)) rmSync(left, { force: true });
    try {
      linkSync(file, replaced);
    } catch {
      // Not every file system has links.
      copyFileSync(file, replaced);
    }
    for (const suffix of ["-wal", "-shm"]) if (existsSync(file + suffix)) renameSync(file + suffix, replaced + suffix);
    return replaced;
  }
}
