import type { Timer } from "../clock.ts";
import type { LaneEvent } from "./event.ts";

/** The events of one object for one function, in order; one of them at a time is in a handler. */
export class Lane {
  readonly key: string;
  /** Its head is in a handler, or about to be. */
  running = false;
  /** Waits for the next attempt at its head. */
  backoff: Timer | undefined;
  /** Its head is out of attempts and holds the lane, as the manifest asks. */
  blocked = false;
  private readonly events: LaneEvent[] = [];

  constructor(key: string) {
    this.key = key;
  }

  get head(): LaneEvent | undefined {
    return this.events[0];
  }

  get tail(): LaneEvent | undefined {
    return this.events.at(-1);
  }

  get length(): number {
    return this.events.length;
  }

  get isIdle(): boolean {
    return !this.running && this.backoff === undefined;
  }

  /** Whether live events go first; an event found by a list gives way to other lanes. */
  get isBulk(): boolean {
    const flags = this.head?.flags;
    return flags?.initial === true || flags?.synthetic === true;
  }

  push(event: LaneEvent): void {
    this.events.push(event);
  }

  shift(): void {
    this.events.shift();
  }

  /** Takes the tail away. */
  pop(): void {
    this.events.pop();
  }

  [Symbol.iterator](): Iterator<LaneEvent> {
    return this.events[Symbol.iterator]();
  }
}
