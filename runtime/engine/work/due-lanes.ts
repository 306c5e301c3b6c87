import type { Clock, Timer } from "../../base/clock.ts";

/**
 * The longest delay that a timer is set for, in milliseconds. A timer of Node holds 24.8 days; longer waits set it once a day.
 */
const longestTimerMs = 24 * 60 * 60 * 1000;

/** The time by which a timer of Node may fire early, in milliseconds. */
const earlyMs = 1;

/** The number of due items that one turn of the event loop takes. */
const mostInATurn = 512;

/** An item that waits for its time. Only the queue writes both fields. */
export interface Due {
  /** In monotonic milliseconds. */
  dueAt: number;
  /** Its index in the heap; -1 while it does not wait. */
  place: number;
}

/**
 * Items that wait for their time: a binary heap and one timer. A timer with its closures for each item took more, and a
 * reconciler may have an item for each of 100,000 objects.
 */
export class DueLanes<T extends Due> {
  private readonly clock: Clock;
  private readonly due: (items: readonly T[]) => void;
  private readonly heap: T[] = [];
  private timer: { readonly at: number; readonly timer: Timer } | undefined;

  /** @param due called with the items whose time has come, which no longer wait; earliest first */
  constructor(clock: Clock, due: (items: readonly T[]) => void) {
    this.clock = clock;
    this.due = due;
  }

  /** Adds an item that does not wait yet. */
  add(item: T, delayMs: number): void {
    item.dueAt = this.clock.monotonic() + delayMs;
    this.heap.push(item);
    this.rise(item, this.heap.length - 1);
    if (item.place === 0) this.arm();
  }

  /** Removes an item. If it was the next one, the timer fires once without effect. */
  remove(item: T): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.heap.pop();
    if (last === undefined || last === item) return;
    this.rise(last, place);
    this.sink(last, last.place);
  }

  stop(): void {
    this.timer?.timer.cancel();
    this.timer = undefined;
  }

  private arm(): void {
    const [first] = this.heap;
    if (!first || (this.timer && this.timer.at <= first.dueAt)) return;
    this.timer?.timer.cancel();
    const now = this.clock.monotonic();
    const delayMs = Math.min(longestTimerMs, Math.max(0, first.dueAt - now));
    this.timer = { at: now + delayMs, timer: this.clock.after(delayMs, () => this.fire()) };
  }

  private fire(): void {
    this.timer = undefined;
    const now = this.clock.monotonic() + earlyMs;
    const items: T[] = [];
    for (let [first] = this.heap; first && first.dueAt < now && items.length < mostInATurn; [first] = this.heap) {
      this.remove(first);
      items.push(first);
    }
    this.arm();
    if (items.length > 0) this.due(items);
  }

  /** Puts the item in the place, or closer to the root. */
  private rise(item: T, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.heap[above] as T;
      if (parent.dueAt <= item.dueAt) break;
      this.put(parent, place);
      place = above;
    }
    this.put(item, place);
  }

  /** Puts the item in the place, or farther from the root. */
  private sink(item: T, from: number): void {
    const { heap } = this;
    let place = from;
    for (;;) {
      const left = 2 * place + 1;
      const right = left + 1;
      const isRight = right < heap.length && (heap[right] as T).dueAt < (heap[left] as T).dueAt;
      const child = heap[isRight ? right : left];
      if (!child || child.dueAt >= item.dueAt) break;
      this.put(child, place);
      place = isRight ? right : left;
    }
    this.put(item, place);
  }

  private put(item: T, place: number): void {
    this.heap[place] = item;
    item.place = place;
  }
}
