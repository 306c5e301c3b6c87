import type { Change } from "../scan/change.ts";

/** Most live events that are held until a list is complete: about one second's worth for a WatchList. */
const heldLimit = 10_000;
const heldBytesLimit = 32 * 1024 * 1024;

/** Live events that wait until the list before them is complete. */
export class HeldChanges {
  private changes: Change[] = [];
  private bytes = 0;

  get first(): Change | undefined {
    return this.changes[0];
  }

  /** @returns false if the limit is exceeded. */
  add(change: Change): boolean {
    this.changes.push(change);
    this.bytes += change.body.length;
    return this.changes.length <= heldLimit && this.bytes <= heldBytesLimit;
  }

  /** Removes and returns all held changes, in order. */
  take(): readonly Change[] {
    const { changes } = this;
    this.changes = [];
    this.bytes = 0;
    return changes;
  }
}
