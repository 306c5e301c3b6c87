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
export class ReadyQueue<T extends FifoItem<T> & { readonly isBulk: boolean }> {
  private readonly live = new Fifo<T>();
  private readonly bulk = new Fifo<T>();

  /** Adds a lane. One that is there already keeps its place, unless its head is of the other kind now. */
  add(lane: T): void {
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
  get first(): T | undefined {
    return this.live.first ?? this.bulk.first;
  }

  delete(lane: T): void {
    lane.list?.remove(lane);
  }
}
