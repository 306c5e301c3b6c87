/** What can stand in a line: it knows its neighbours there. */
export interface FifoItem<T> {
  line: Fifo<T> | undefined;
  before: T | undefined;
  behind: T | undefined;
}

/**
 * Those who wait, in the order in which they came. A Set would keep the places of those that have left, and would be searched
 * from there on each time for its first.
 */
export class Fifo<T> {
  private head: (T & FifoItem<T>) | undefined;
  private tail: (T & FifoItem<T>) | undefined;
  private count = 0;

  /** How many stand in it. */
  get length(): number {
    return this.count;
  }

  get first(): T | undefined {
    return this.head;
  }

  /** Adds one that stands in no line. */
  push(one: T & FifoItem<T>): void {
    const { tail } = this;
    this.count++;
    one.line = this;
    one.before = tail;
    if (tail) tail.behind = one;
    else this.head = one;
    this.tail = one;
  }

  /** Takes one out that stands in this line. */
  remove(one: T & FifoItem<T>): void {
    this.count--;
    const before = one.before as (T & FifoItem<T>) | undefined;
    const behind = one.behind as (T & FifoItem<T>) | undefined;
    if (before) before.behind = behind;
    else this.head = behind;
    if (behind) behind.before = before;
    else this.tail = before;
    // One that has left must keep no other alive.
    one.line = one.before = one.behind = undefined;
  }
}

/** Lanes that could run, first come first served; those with live events before those that lists filled. */
export class ReadyQueue<T extends FifoItem<T> & { readonly isBulk: boolean }> {
  private readonly live = new Fifo<T>();
  private readonly bulk = new Fifo<T>();

  /** It stays where it is if it is there already, unless its head has been replaced by one of the other kind. */
  add(lane: T): void {
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
  get first(): T | undefined {
    return this.live.first ?? this.bulk.first;
  }

  delete(lane: T): void {
    lane.line?.remove(lane);
  }
}
