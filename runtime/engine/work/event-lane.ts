import type { ResourceVersion } from "../../base/resource-version.ts";
import type { LaneEvent } from "./event.ts";
import { Lane } from "./lane.ts";
import type { MemoryLimit } from "./spill.ts";

/** The bytes of the bodies of some events. */
export const sizeOf = (events: readonly { readonly size: number }[]): number =>
  events.reduce((sum, { size }) => sum + size, 0);

/** The last event of a lane, if it is on disk alone. */
interface ShelvedTail {
  readonly event: LaneEvent;
  /** The state that its handler receives before it; `undefined` if that is not known. */
  readonly from: ResourceVersion | undefined;
}

/**
 * The events of one object for one function, in order, one at a time in a handler. The first are in memory. Later ones may be on
 * disk alone; then the lane keeps their sequences (its shelf).
 */
export class EventLane extends Lane {
  /** The arrival of the first event that waits, including one that a newer one replaced; in monotonic milliseconds. */
  since: number | undefined;
  /** Whether its events on disk are being read. */
  reading = false;
  private events: LaneEvent[] = [];
  private shelf: number[] = [];
  /** The last event that was shelved, while it is on disk alone. */
  private lastShelved: ShelvedTail | undefined;
  /** The bytes of the bodies on the shelf. */
  private shelfSize = 0;
  /** The index in `shelf` of the first event that was not taken back. */
  private shelfHead = 0;

  get head(): LaneEvent | undefined {
    return this.events[0];
  }

  get tail(): LaneEvent | undefined {
    return this.events.at(-1);
  }

  /** The number of its events in memory. */
  get length(): number {
    return this.events.length;
  }

  get arrivedAt(): number | undefined {
    return this.head?.receivedWall;
  }

  get isBulk(): boolean {
    const flags = this.head?.flags;
    return flags?.initial === true || flags?.synthetic === true;
  }

  /** The sequence of its first event that is on disk alone. */
  get firstShelved(): number | undefined {
    return this.shelf[this.shelfHead];
  }

  protected get headReport() {
    const { head } = this;
    return head && { type: head.type, attempts: head.attempts, trigger: head.objects.trigger.name };
  }

  /** The time that its head's handler asked for is over, or was given up. */
  endWait(): void {
    if (this.head) this.head.notBefore = undefined;
  }

  push(event: LaneEvent): void {
    this.since ??= event.receivedAt;
    // Most lanes have one event, and pushing to an empty array allocates room for seventeen.
    if (this.events.length === 0) this.events = [event];
    else this.events.push(event);
  }

  shift(): void {
    this.events.shift();
    this.since = this.head?.receivedAt;
  }

  /** Removes the tail. */
  pop(): void {
    this.events.pop();
  }

  /** Removes events other than its head. */
  remove(gone: ReadonlySet<LaneEvent>): void {
    this.events = this.events.filter((event) => !gone.has(event));
  }

  /** Adds an event that is on disk alone to its end. `from` is the state that its handler receives before it. */
  shelve(event: LaneEvent, from = this.stateBefore(event)): void {
    this.shelf.push(event.sequence);
    this.shelfSize += event.size;
    event.body = undefined;
    this.lastShelved = { event, from };
  }

  /** The last event of its shelf; `undefined` while that may be among those being read. */
  get shelvedTail(): ShelvedTail | undefined {
    return this.reading ? undefined : this.lastShelved;
  }

  /** The number of events on its shelf, and the bytes of their bodies. */
  get shelved(): MemoryLimit {
    return { events: this.shelf.length - this.shelfHead, bytes: this.shelfSize };
  }

  /** Removes the last event of its shelf. */
  unshelve({ size }: LaneEvent): void {
    this.shelf.pop();
    this.shelfSize -= size;
    this.lastShelved = undefined;
  }

  private stateBefore({ objects }: LaneEvent): ResourceVersion | undefined {
    const before = this.lastShelved?.event;
    return before?.objects === objects ? (before.deletedBy ?? before.meta.resourceVersion) : undefined;
  }

  /** Moves all but its first events to the shelf, because they are on disk alone from now on. Returns them. */
  shelveFrom(kept: number): readonly LaneEvent[] {
    const taken = this.events.splice(kept);
    this.shelf = [...taken.map(({ sequence }) => sequence), ...this.shelf.slice(this.shelfHead)];
    this.shelfHead = 0;
    this.shelfSize += sizeOf(taken);
    return taken;
  }

  /** Returns the sequences of the next events on disk, at most so many. */
  nextShelved(count: number): readonly number[] {
    return this.shelf.slice(this.shelfHead, this.shelfHead + count);
  }

  /** Removes the first events of the shelf, which are pushed next, with bodies of so many bytes. */
  takeBack(count: number, size: number): void {
    this.shelfHead += count;
    this.shelfSize -= size;
    if (this.firstShelved === undefined) this.lastShelved = undefined;
    // Amortised: the array is cut when more than half of it is behind the head.
    if (this.shelfHead * 2 <= this.shelf.length) return;
    this.shelf = this.shelf.slice(this.shelfHead);
    this.shelfHead = 0;
  }

  /** Returns how many of its events, from the head on, fit into a limit; the head always does. */
  within({ events, bytes }: MemoryLimit): number {
    let size = 0;
    const over = this.events.findIndex((event, index) => {
      size += event.size;
      return index >= events || size > bytes;
    });
    return over < 0 ? this.length : Math.max(1, over);
  }

  /**
   * Returns its events up to the last one that was received by `limit`, or is backlog. All before that one are included, so that
   * their order on disk has no holes.
   */
  pinned(limit: number): readonly LaneEvent[] {
    const isPinned = ({ receivedAt, mark }: LaneEvent) => receivedAt <= limit || mark?.owner.isBacklog(mark.entry);
    return this.events.slice(0, this.events.findLastIndex(isPinned) + 1);
  }

  /** Its events up to the last one that an earlier process may have handled without a record on disk. */
  get withUnpersistedRisk(): readonly LaneEvent[] {
    return this.events.slice(
      0,
      this.events.findLastIndex(({ redeliveryRisk }) => redeliveryRisk === "unpersisted") + 1,
    );
  }

  [Symbol.iterator](): Iterator<LaneEvent> {
    return this.events[Symbol.iterator]();
  }
}

/** Counts events that are in memory alone, by view. */
export function inMemory(lanes: Iterable<EventLane>): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const lane of lanes) {
    for (const { place, objects } of lane)
      if (place === "memory") counts.set(objects.id, (counts.get(objects.id) ?? 0) + 1);
  }
  return counts;
}
