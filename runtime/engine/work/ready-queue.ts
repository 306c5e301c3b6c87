/** An item of a `Fifo`, linked to its neighbours. */
export interface FifoItem<T> {
  line: Fifo<T> | undefined;
  before: T | undefined;
  behind: T | undefined;
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
    one.line = this;
    one.before = tail;
    if (tail) tail.behind = one;
    else this.first = one;
    this.tail = one;
  }

  /** Removes an item of this queue. */
  remove(one: T & FifoItem<T>): void {
    this.length--;
    const before = one.before as (T & FifoItem<T>) | undefined;
    const behind = one.behind as (T & FifoItem<T>) | undefined;
    if (before) before.behind = behind;
    else this.first = behind;
    if (behind) behind.before = before;
    else this.tail = before;
    // A removed item must not keep others alive.
    one.line = one.before = one.behind = undefined;
  }
}

/** Lanes that could run, in order of arrival; those with live events before those that lists filled. */
export class ReadyQueue<T extends FifoItem<T> & { readonly isBulk: boolean }> {
  private readonly live = new Fifo<T>();
  private readonly bulk = new Fifo<T>();

  /** Adds a lane. One that is there already keeps its place, unless its head is of the other kind now. */
  add(lane: T): void {
    const line = lane.isBulk ? this.bulk : this.live;
    if (lane.line === line) return;
    this.delete(lane);
    line.push(lane);
  }

  /** The number of lanes. */
  get length(): number {
    return this.live.length + this.bulk.length;
  }

  /** The next lane. */
  get first(): T | undefined {
    return this.live.first ?? this.bulk.first;
  }

  delete(lane: T): void {
    lane.line?.remove(lane);
  }
}
