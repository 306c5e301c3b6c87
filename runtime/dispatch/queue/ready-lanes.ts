import { TransientSet } from "../../transient.ts";
import type { Lane } from "./lane.ts";

/** Lanes that could run, first come first served; those with live events before those that lists filled. */
export class ReadyLanes {
  private readonly live = new TransientSet<Lane>();
  private readonly bulk = new TransientSet<Lane>();

  add(lane: Lane): void {
    // Its head may have been replaced since it was last added.
    (lane.isBulk ? this.live : this.bulk).delete(lane);
    (lane.isBulk ? this.bulk : this.live).add(lane);
  }

  /** The next. */
  get first(): Lane | undefined {
    for (const lane of this.live) return lane;
    for (const lane of this.bulk) return lane;
    return undefined;
  }

  delete(lane: Lane): void {
    this.live.delete(lane);
    this.bulk.delete(lane);
  }
}
