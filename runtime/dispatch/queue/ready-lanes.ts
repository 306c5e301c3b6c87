import type { Lane } from "./lane.ts";

/** Lanes that could run, first come first served; those with live events before those that lists filled. */
export class ReadyLanes {
  private readonly live = new Set<Lane>();
  private readonly bulk = new Set<Lane>();

  get size(): number {
    return this.live.size + this.bulk.size;
  }

  add(lane: Lane): void {
    // Its head may have been replaced since it was last added.
    (lane.isBulk ? this.live : this.bulk).delete(lane);
    (lane.isBulk ? this.bulk : this.live).add(lane);
  }

  /** Takes the next. */
  take(): Lane | undefined {
    const from = this.live.size > 0 ? this.live : this.bulk;
    for (const lane of from) {
      from.delete(lane);
      return lane;
    }
    return undefined;
  }
}
