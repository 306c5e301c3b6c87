import type { Clock } from "../../base/clock.ts";
import type { EventType } from "../../manifest/function.ts";
import type { Due } from "./due-lanes.ts";

/** Why a lane does not run now: its head failed, its executor died, its handler asked for a later time, or the object still changes. */
export type Waits = "retry" | "interrupted" | "requeue" | "debounce";

/** The next attempt of a lane, for commands. */
interface LaneHead {
  readonly type: EventType;
  readonly attempts: number;
  readonly trigger: string;
}

/** The state of a lane, for commands. */
export interface LaneReport {
  /** The number of events in memory, including the head; more may be on disk. 1 for a key. */
  readonly waiting: number;
  readonly head: LaneHead;
  /** Whether its head is in a handler, or about to be. */
  readonly running: boolean;
  /** Whether its head was attempted, and waits for the next attempt. */
  readonly retrying: boolean;
  /** Whether it waits because its handler asked to be run again later, and nothing failed. */
  readonly requeued: boolean;
  /** Whether its head is out of attempts and holds the lane. */
  readonly blocked: boolean;
  /** Whether the function is paused, so that no attempt begins. */
  readonly held: boolean;
}

/** The work for one object or key, which a function does in order and one at a time: events of the object, or the key itself. */
export abstract class Lane implements Due, FifoItem<Lane> {
  readonly key: string;
  /** Whether its head is in a handler, or about to be. */
  running = false;
  /** Whether its head is out of attempts and holds the lane, as the manifest asks. */
  blocked = false;
  waits: Waits | undefined;
  dueAt = 0;
  place = -1;
  /** The queue of ready lanes that it is in, and its neighbours there. */
  list: Fifo<Lane> | undefined;
  previous: Lane | undefined;
  next: Lane | undefined;

  constructor(key: string) {
    this.key = key;
  }

  /** The subject of its next attempt; `undefined` if all of its events are on disk alone. */
  abstract get head(): { readonly attempts: number } | undefined;
  /** The number of its events in memory; 1 for a key. */
  abstract get length(): number;
  /** The arrival of its head, in wall-clock milliseconds. */
  abstract get arrivedAt(): number | undefined;
  /** Whether lanes with live events go first, because its head was found by a list. */
  abstract get isBulk(): boolean;
  protected abstract get headReport(): LaneHead | undefined;

  /** Called when its wait is over, before `waits` is reset. */
  abstract endWait(clock: Clock): void;

  /** Whether it waits for the next attempt at its head, after one has ended. */
  get isBackingOff(): boolean {
    return this.waits !== undefined && this.waits !== "debounce";
  }

  /** Whether its head could run and has not begun: it waits for nothing but its function's turn. */
  get isDue(): boolean {
    return this.waits === undefined && this.head?.attempts === 0;
  }

  /** Returns its state; `undefined` if it has no head. */
  report(held: boolean): LaneReport | undefined {
    const { headReport: head, length: waiting, running, isBackingOff: retrying, blocked } = this;
    return head && { waiting, head, running, retrying, requeued: this.waits === "requeue", blocked, held };
  }
}

/** An item of a `Fifo`, linked to its neighbours. */
export interface FifoItem<T> {
  list: Fifo<T> | undefined;
  previous: T | undefined;
  next: T | undefined;
}

/**
 * A queue as a linked list. A Set would keep the slots of removed items, and search through them for its first item each time.
 */
export class Fifo<T> {
  /** Written here only. */
  first: (T & FifoItem<T>) | undefined;
  /** The number of items. Written here only. */
  length = 0;
  private tail: (T & FifoItem<T>) | undefined;

  /** Adds an item that is in no queue. */
  push(one: T & FifoItem<T>): void {
    const { tail } = this;
    this.length++;
    one.list = this;
    one.previous = tail;
    if (tail) tail.next = one;
    else this.first = one;
    this.tail = one;
  }

  /** Removes an item of this queue. */
  remove(one: T & FifoItem<T>): void {
    this.length--;
    const previous = one.previous as (T & FifoItem<T>) | undefined;
    const next = one.next as (T & FifoItem<T>) | undefined;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.tail = previous;
    // A removed item must not keep others alive.
    one.list = one.previous = one.next = undefined;
  }
}

/** Lanes that could run, in order of arrival; those with live events before those that lists filled. */
export class ReadyQueue<L extends Lane> {
  private readonly live = new Fifo<Lane>();
  private readonly bulk = new Fifo<Lane>();

  /** Adds a lane. One that is there already keeps its place, unless its head is of the other kind now. */
  add(lane: L): void {
    const list = lane.isBulk ? this.bulk : this.live;
    if (lane.list === list) return;
    this.delete(lane);
    list.push(lane);
  }

  /** The number of lanes. */
  get length(): number {
    return this.live.length + this.bulk.length;
  }

  /** The next lane. */
  get first(): L | undefined {
    // Only lanes of the type L are added.
    return (this.live.first ?? this.bulk.first) as L | undefined;
  }

  delete(lane: L): void {
    lane.list?.remove(lane);
  }
}
