import { BatchSize, type QueuedEvent } from "./batch.ts";

/** The events that a realm may take. */
export interface EventSource {
  /** How many of them may begin now; 0 if nothing is queued. */
  readonly room: number;
  /** Removes and returns up to `most` events. */
  take(most: number): readonly QueuedEvent[];
  /** Puts events back at the front that were taken last and have not begun. */
  putBack(events: readonly QueuedEvent[]): void;
}

/** Takes events for a realm's entries: decides how many at once, and tracks those that were taken and have not begun. */
export class RealmIntake {
  private readonly source: EventSource;
  private readonly batch = new BatchSize();
  /** Events that were taken and begin with the next entry. */
  private carried: readonly QueuedEvent[] = [];
  private entered: readonly QueuedEvent[] = [];
  /** How many of those could begin at once. */
  private couldBegin = 0;
  private count = 0;

  constructor(source: EventSource) {
    this.source = source;
  }

  /** How many events may begin now; 0 if nothing is queued. */
  get room(): number {
    return this.source.room;
  }

  /** Whether an event has been taken that has not begun, or another can be taken. */
  get hasWork(): boolean {
    return this.carried.length > 0 || this.source.room > 0;
  }

  /** Maximum number of items of the next entry. */
  get items(): number {
    return this.batch.items;
  }

  /** Number of events taken so far, without those that were put back. */
  get taken(): number {
    return this.count;
  }

  /** Takes one event now that begins with the entry after the next. Returns the new events: one, or an empty array. */
  carry(): readonly QueuedEvent[] {
    const fresh = this.source.take(1);
    this.carried = [...this.carried, ...fresh];
    this.count += fresh.length;
    return fresh;
  }

  /**
   * Takes events for an entry with room for `items` items. Returns all events that may begin in it, and those of them that are
   * new.
   */
  take(items: number): { readonly events: readonly QueuedEvent[]; readonly fresh: readonly QueuedEvent[] } {
    const { room } = this.source;
    const fresh = room > 0 ? this.source.take(Math.min(items, this.batch.eventsIn(room))) : [];
    this.entered = [...this.carried, ...fresh];
    this.carried = [];
    this.couldBegin = room;
    this.count += fresh.length;
    return { events: this.entered, fresh };
  }

  /**
   * Records an entry of `items` items that used `usedMs` of CPU. The last `left` of its events have not begun and are put back.
   * Returns these, or `undefined` if `left` is impossible.
   */
  took(items: number, usedMs: number, left: number): readonly QueuedEvent[] | undefined {
    const began = this.entered.length - left;
    if (left < 0 || began < 0) return undefined;
    this.batch.took(items - left, usedMs);
    if (this.entered.length > 0) this.batch.began(began, left, this.couldBegin);
    const back = this.entered.slice(began);
    this.entered = [];
    this.count -= left;
    if (left > 0) this.source.putBack(back);
    return back;
  }
}
