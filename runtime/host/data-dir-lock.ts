import { join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { isBusy } from "../journal/sqlite/fault.ts";
import { SqliteLock } from "../journal/sqlite/lock.ts";
import { leaveAddress } from "../observe/address-file.ts";

/** Lock held by the runtime whose address is in the folder. */
const addressLock = "url.lock";
/** Lock held by a replica of a fleet, which keeps no checkpoints in the folder. */
const replicaLock = "replica.lock";

/**
 * A runtime's presence in its data folder, where commands find its address. Runtimes may share a folder: a standby, or one that
 * waits for the checkpoints in it. The address is that of the active runtime, or of the first.
 */
export class DataDirLock {
  private readonly folder: string;
  private readonly locks = new Map<string, SqliteLock>();

  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Reserves the folder for this replica. No other replica of any fleet can use it then.
   * @throws WatchfireError WF_CHECKPOINT_LOCKED
   */
  asReplica(): void {
    if (this.takes(replicaLock)) return;
    const what = "another replica of a fleet has this data folder, and commands find that one by it";
    const place = { file: join(this.folder, replicaLock) };
    throw new WatchfireError("WF_CHECKPOINT_LOCKED", { what, place });
  }

  /** Writes the address, unless a live runtime has written another. */
  announce(url: string): void {
    if (this.takes(addressLock)) leaveAddress(this.folder, url);
  }

  /** Writes the address of this runtime, which is active from now on. */
  takeOver(url: string): void {
    this.takes(addressLock);
    leaveAddress(this.folder, url);
  }

  end(): void {
    for (const lock of this.locks.values()) lock.release();
    this.locks.clear();
  }

  /** Takes the lock. Returns false if another process holds it. A folder that cannot be written is not shared. */
  private takes(name: string): boolean {
    if (this.locks.has(name)) return true;
    try {
      makeFolder(this.folder, 0o700);
      this.locks.set(name, new SqliteLock(this.folder, name));
      return true;
    } catch (error) {
      return !isBusy(error);
    }
  }
}
