import { BatchSize, type QueuedEvent } from "./batch.ts";

/** Where a realm's events come from, as far as that realm may take them. */
export interface EventSource {
  /** How many of them may begin now; 0 where none waits. */
  readonly room: number;
  /** The next, at most so many. */
  take(most: number): readonly QueuedEvent[];
  /** The last of those taken, which have not begun: they come first again. */
  putBack(events: readonly QueuedEvent[]): void;
}

/** What a realm takes for its entries: how much at once, and what it took and has not begun. */
export class RealmIntake {
  private readonly source: EventSource;
  private readonly batch = new BatchSize();
  /** Events that were taken, and begin with the next entry. */
  private carried: readonly QueuedEvent[] = [];
  private entered: readonly QueuedEvent[] = [];
  /** How many of those could begin at once. */
  private couldBegin = 0;
  private count = 0;

  constructor(source: EventSource) {
    this.source = source;
  }

  /** How many events may begin now; 0 where none waits. */
  get room(): number {
    return this.source.room;
  }

  /** Whether an event waits that was taken, or may be. */
  get hasWork(): boolean {
    return this.carried.length > 0 || this.source.room > 0;
  }

  /** Items of the next entry. */
  get items(): number {
    return this.batch.items;
  }

  /** Events taken so far that have begun, or may have. */
  get taken(): number {
    return this.count;
  }

  /** Takes one event that begins with the next entry but one. */
  carry(): readonly QueuedEvent[] {
    const fresh = this.source.take(1);
    this.carried = [...this.carried, ...fresh];
    this.count += fresh.length;
    return fresh;
  }

  /** Takes events for an entry that has room for so many items. Gives all that may begin there, and those that are new. */
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
   * Notes an entry of so many items that took so much CPU. Of the events that were taken for it, the last `left` have not
   * begun: they go back. Gives these; undefined where there are not as many.
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
