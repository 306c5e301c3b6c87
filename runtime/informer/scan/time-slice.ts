import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";

/** Other work waits no longer than this for one answer's chunks, in milliseconds. */
const turnMs = 10;

/** Lets the event loop turn while a long answer, or a burst of events, is read chunk by chunk. */
export class TimeSlice {
  private readonly clock: Clock;
  private began: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.began = clock.monotonic();
  }

  /** To be asked after each chunk. */
  get isOver(): boolean {
    return this.clock.monotonic() - this.began >= turnMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.began = this.clock.monotonic();
  }
}
