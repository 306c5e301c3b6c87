import type { Clock } from "../../base/clock.ts";
import type { EventLane } from "./event-lane.ts";

/** A change waits at most so many times the quiet time, where the object changes on and on. */
const mostTimes = 10;
/** And at most so long, in milliseconds: then it goes to disk, and the position passes it. */
const mostMs = 60_000;

/**
 * How long something is still to wait until it was quiet, in milliseconds; 0 and less where it was.
 * @param debounceMs at most a minute; undefined where nothing waits
 * @param since when the first change came that waits
 * @param last when the last one came
 */
export function quietMs(debounceMs: number | undefined, since: number, last: number, now: number): number {
  if (debounceMs === undefined) return 0;
  return Math.min(last + debounceMs, since + Math.min(mostTimes * debounceMs, mostMs)) - now;
}

/** Holds lanes back until their objects were quiet. */
export class Debounce {
  private readonly clock: Clock;
  private readonly over: (lane: EventLane) => void;

  /** @param over gets a lane that was held, to be asked about again */
  constructor(clock: Clock, over: (lane: EventLane) => void) {
    this.clock = clock;
    this.over = over;
  }

  /** Whether the lane's head waits. Only a first attempt does, at a change that did not wait on disk. */
  holds(lane: EventLane, debounceMs: number | undefined): boolean {
    if (lane.quiet) return true;
    const { head, tail, since } = lane;
    if (debounceMs === undefined || !head || !tail || head.type === "Scheduled") return false;
    if (head.attempts > 0 || head.interruptions > 0 || head.place !== "memory") return false;
    const waitMs = quietMs(debounceMs, since ?? head.receivedAt, tail.receivedAt, this.clock.monotonic());
    if (waitMs <= 0) return false;
    // Changes that come meanwhile are looked at when it is over.
    lane.quiet = this.clock.after(waitMs, () => {
      lane.quiet = undefined;
      this.over(lane);
    });
    return true;
  }
}
