import type { Change } from "../scan/change.ts";

/** Live events that may come before a list is complete: for a WatchList, those of about a second. */
const heldLimit = 10_000;
const heldBytesLimit = 32 * 1024 * 1024;

/** Live events that wait until the list before them is complete. */
export class HeldChanges {
  private changes: Change[] = [];
  private bytes = 0;

  get first(): Change | undefined {
    return this.changes[0];
  }

  /** @returns false where more come than can be held. */
  add(change: Change): boolean {
    this.changes.push(change);
    this.bytes += change.body.length;
    return this.changes.length <= heldLimit && this.bytes <= heldBytesLimit;
  }

  /** All of them, in their order; none is held any more. */
  take(): readonly Change[] {
    const { changes } = this;
    this.changes = [];
    this.bytes = 0;
    return changes;
  }
}
