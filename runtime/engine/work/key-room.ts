import type { KeyLane, KeyPresence } from "./key-lane.ts";
import type { Spill } from "./spill.ts";

/**
 * Keys without an object that one function may have. Keys of objects are as many as there are objects, each of which costs
 * more than its key. Keys that a `key` expression names, or an owner that is gone, have no such bound.
 */
const mostWithoutObject = 10_000;

/** Keys of which it is not known yet whether they have an object. */
const mostUnknown = 100_000;

/** What a key takes in memory, and about as much in its row, in bytes: its parts, two copies of its name, and each cause. */
const keyBytes = 1024;
const causeBytes = 256;

/** The room for one function's keys: how many there are without an object, and what these take of the shared budgets. */
export class KeyRoom {
  private readonly spill: Pick<Spill, "holdKeys" | "isFullOfKeys">;
  private readonly counts: Record<KeyPresence, number> = { object: 0, none: 0, unknown: 0 };

  constructor(spill: Pick<Spill, "holdKeys" | "isFullOfKeys">) {
    this.spill = spill;
  }

  /** Counts a key, from now on or anew. */
  note(lane: KeyLane, standing: KeyPresence): void {
    this.forget(lane);
    lane.standing = standing;
    this.counts[standing]++;
    if (standing !== "none") return;
    lane.counted = keyBytes + 2 * lane.key.length + causeBytes * (lane.causes.length + lane.since.length);
    this.spill.holdKeys(lane.counted);
  }

  /** The key counts no more. */
  forget(lane: KeyLane): void {
    if (lane.standing) this.counts[lane.standing]--;
    lane.standing = undefined;
    if (lane.counted > 0) this.spill.holdKeys(-lane.counted);
    lane.counted = 0;
  }

  get withoutObject(): number {
    return this.counts.none;
  }

  /** Whether changes are to wait until there are fewer keys. */
  get isFull(): boolean {
    const { none, unknown } = this.counts;
    return none >= mostWithoutObject || unknown >= mostUnknown || this.spill.isFullOfKeys;
  }
}
