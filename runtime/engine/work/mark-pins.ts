import type { Commits } from "../commit/commits.ts";
import type { Backlogs } from "./backlog.ts";
import type { EventLane } from "./event-lane.ts";
import type { Spill } from "./spill.ts";

/** Bytes of these events in one commit, so that other functions wait for it for 10 ms at most. */
const pinnedAtOnce = 1024 * 1024;

interface MarkPinsParts {
  readonly lanes: { values(): Iterable<EventLane> };
  readonly spill: Spill;
  readonly backlogs: Backlogs;
  readonly commits: Pick<Commits, "flush">;
  readonly isStopped: () => boolean;
  /** Reduces a lane that will wait long to its head in memory. */
  readonly rest: (lane: EventLane) => void;
}

/** Writes a function's events that hold the mark for long to disk, so that the mark may pass them. */
export class MarkPins {
  private readonly parts: MarkPinsParts;
  private pinning: Promise<void> | undefined;
  private isPinningLong = false;

  constructor(parts: MarkPinsParts) {
    this.parts = parts;
  }

  /**
   * Writes backlog events. Their bodies stay in memory, since they may run next. Returns a promise of the rest if they are so
   * large that they take several commits.
   */
  keepBacklog(): Promise<void> | undefined {
    if (this.pinning || this.pinBacklog()) return this.pinning;
    this.pinning = this.pinRest().finally(() => {
      this.pinning = undefined;
    });
    return this.pinning;
  }

  /** Returns whether nothing is left for a later commit. */
  private pinBacklog(): boolean {
    const { lanes, spill } = this.parts;
    for (const lane of lanes.values()) {
      if (spill.pinAll(lane.pinned(Number.NEGATIVE_INFINITY), pinnedAtOnce) === "more") return false;
    }
    return true;
  }

  private async pinRest(): Promise<void> {
    const { commits, isStopped } = this.parts;
    do await commits.flush();
    while (!isStopped() && !this.pinBacklog());
  }

  /** Writes events that were received by `limit`, in monotonic milliseconds, and have not ended. */
  async pinLong(limit: number): Promise<void> {
    if (this.isPinningLong) return;
    this.isPinningLong = true;
    await this.pinLanes(limit).finally(() => {
      this.isPinningLong = false;
    });
  }

  private async pinLanes(limit: number): Promise<void> {
    const { lanes, commits, isStopped } = this.parts;
    for (const lane of [...lanes.values()]) {
      while (!this.pinUpTo(lane, limit)) {
        await commits.flush();
        if (isStopped()) return;
      }
    }
  }

  /** Returns whether nothing is left for a later commit. */
  private pinUpTo(lane: EventLane, limit: number): boolean {
    const { spill, backlogs, rest } = this.parts;
    let pinned = spill.pinAll(lane.pinned(limit), pinnedAtOnce);
    if (pinned === "full") {
      backlogs.collapse(lane, lane.within(spill.recordLimit));
      pinned = spill.pinAll(lane.pinned(limit), pinnedAtOnce);
    }
    if (pinned === "more") return false;
    const { head, running, isBackingOff } = lane;
    if ((running || isBackingOff) && head && head.receivedAt <= limit) rest(lane);
    return true;
  }
}
