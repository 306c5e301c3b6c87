import type { EventLane } from "./event-lane.ts";
import { Fifo } from "./fifo.ts";

/** Lanes that could run, first come first served; those with live events before those that lists filled. */
export class ReadyQueue {
  private readonly live = new Fifo<EventLane>();
  private readonly bulk = new Fifo<EventLane>();

  /** It stays where it is if it is there already, unless its head has been replaced by one of the other kind. */
  add(lane: EventLane): void {
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
  get first(): EventLane | undefined {
    return this.live.first ?? this.bulk.first;
  }

  delete(lane: EventLane): void {
    lane.line?.remove(lane);
  }
}
