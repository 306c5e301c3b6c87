import type { Lane } from "./lane.ts";
import { Line } from "./line.ts";

/** Lanes that could run, first come first served; those with live events before those that lists filled. */
export class ReadyLanes {
  private readonly live = new Line<Lane>();
  private readonly bulk = new Line<Lane>();

  /** It stays where it is if it is there already, unless its head has been replaced by one of the other kind. */
  add(lane: Lane): void {
    const line = lane.isBulk ? this.bulk : this.live;
    if (lane.line === line) return;
    this.delete(lane);
    line.push(lane);
  }

  /** How many there are. */
  get length(): number {
    return this.live.length + this.bulk.length;
  }

  /** The next. */
  get first(): Lane | undefined {
    return this.live.first ?? this.bulk.first;
  }

  delete(lane: Lane): void {
    lane.line?.remove(lane);
  }
}
