import {
  closeSync,
  copyFileSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../runtime/base/clock.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SecretsJournal } from "../../../runtime/journal/secrets/journal.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import type { KubeTransport } from "../../../runtime/kube/transport.ts";
import type { Dice } from "../random.ts";

/** The storage that outlives a process of the fleet's runtime. */
export interface Disk {
  /** True if it has room for all waiting events. */
  readonly holdsQueues: boolean;
  open(transport: KubeTransport, clock: Clock): Promise<Checkpoint>;
  /** Simulates a kill of the process: what it has written is kept. */
  killed(): void;
  /** Simulates a power loss: what was not synced may be lost. */
  lostPower(dice: Dice): void;
  remove(): void;
}

/** A frame of the write-ahead log: its header and a page (sqlite.org/fileformat2, 4.1). */
const frameBytes = 24 + 2048;
const headerBytes = 32;

/**
 * A data folder. Each process works in its own copy, because a process simulated within this one cannot be killed alone.
 */
export class DataFolder implements Disk {
  readonly holdsQueues = true;
  private readonly root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "watchfire-fleet-"));
  private generation = 0;
  private boot = 1;

  async open(): Promise<Checkpoint> {
    return new Checkpoint(new SqliteJournal({ folder: this.folder, bootId: `boot-${this.boot}` }));
  }

  killed(): void {
    const before = this.folder;
    this.generation++;
    mkdirSync(this.folder);
    for (const name of ["checkpoint.db", "checkpoint.db-wal"]) {
      if (existsSync(join(before, name))) copyFileSync(join(before, name), join(this.folder, name));
    }
  }

  /**
   * SQLite syncs what it copies back into the file, and the file when it is closed. Any part at the end of the log may be lost.
   */
  lostPower(dice: Dice): void {
    this.killed();
    this.boot++;
    const written = this.logLength;
    if (written === 0) return;
    const frames = Math.floor((written - headerBytes) / frameBytes);
    const log = openSync(`${this.file}-wal`, "r+");
    ftruncateSync(log, written - dice.below(frames + 1) * frameBytes);
    closeSync(log);
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  private get folder(): string {
    return join(this.root, String(this.generation));
  }

  private get file(): string {
    return join(this.folder, "checkpoint.db");
  }

  private get logLength(): number {
    return statSync(`${this.file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}

/** The Secrets of the simulated cluster. Each opening has the next fence. */
export class InSecrets implements Disk {
  readonly holdsQueues = false;
  private fence = 0;

  open(transport: KubeTransport, clock: Clock): Promise<Checkpoint> {
    const fence = { lease: "lease-uid", number: ++this.fence };
    const log = { warn: () => {} };
    const place = { namespace: "watchfire", account: "watchfire" };
    return SecretsJournal.open({ transport, clock, fence, log, onLost: () => {}, ...place }).then(
      (journal) => new Checkpoint(journal),
    );
  }

  killed(): void {}
  lostPower(): void {}
  remove(): void {}
}

/** A store whose process can end between any two of its steps: from then on it does nothing, and no call returns. */
export function mortal(store: Checkpoint, isDead: () => boolean): Checkpoint {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      return (...values: unknown[]) => {
        if (isDead()) return new Promise(() => {});
        const result: unknown = Reflect.apply(value, target, values);
        if (!(result instanceof Promise)) return result;
        return result.then((it) => (isDead() ? new Promise(() => {}) : it));
      };
    },
  });
}
