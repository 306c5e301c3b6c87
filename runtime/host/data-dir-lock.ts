import { join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { isBusy } from "../journal/sqlite/fault.ts";
import { SqliteLock } from "../journal/sqlite/lock.ts";
import { leaveAddress } from "../observe/address-file.ts";

/** Held by the runtime that has left its address in the folder. */
const addressLock = "url.lock";
/** Held by a fleet's replica, which keeps no positions in the folder. */
const replicaLock = "replica.lock";

/**
 * A runtime's stay in its data folder, where commands find it. Several may share a folder: a standby, or whoever waits for the
 * positions in it. The address is that of the one that works, or of the first.
 */
export class DataDirLock {
  private readonly folder: string;
  private readonly locks = new Map<string, SqliteLock>();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Has the folder for this replica alone of all fleets'. @throws WatchfireError WF_CHECKPOINT_LOCKED */
  asReplica(): void {
    if (this.takes(replicaLock)) return;
    const what = "another replica of a fleet has this data folder, and commands find that one by it";
    const place = { file: join(this.folder, replicaLock) };
    throw new WatchfireError("WF_CHECKPOINT_LOCKED", { what, place });
  }

  /** Leaves an address, unless a runtime that lives has left its own. */
  announce(url: string): void {
    if (this.takes(addressLock)) leaveAddress(this.folder, url);
  }

  /** Leaves the address of the one that works from now on. */
  takeOver(url: string): void {
    this.takes(addressLock);
    leaveAddress(this.folder, url);
  }

  end(): void {
    for (const lock of this.locks.values()) lock.release();
    this.locks.clear();
  }

  /** Whether nobody else has the lock. A folder that cannot be written is shared with nobody. */
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
