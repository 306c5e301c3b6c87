import type { Timer } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { LaneEvent } from "./event.ts";
import type { Fifo, FifoItem } from "./ready-queue.ts";
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

/** The state of a lane, for commands. */
export interface LaneReport {
  /** The number of events in memory, including the head; more may be on disk. */
  readonly waiting: number;
  readonly head: Pick<LaneEvent, "type" | "attempts"> & { readonly trigger: string };
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

/**
 * The events of one object for one function, in order, one at a time in a handler. The first are in memory. Later ones may be on
 * disk alone; then the lane keeps their sequences (its shelf).
 */
export class EventLane implements FifoItem<EventLane> {
  readonly key: string;
  /** Whether its head is in a handler, or about to be. */
  running = false;
  /** The timer of the next attempt at its head. */
  backoff: Timer | undefined;
  /** The timer of the debounce. */
  debounce: Timer | undefined;
  /** The arrival of the first event that waits, including one that a newer one replaced; in monotonic milliseconds. */
  since: number | undefined;
  /** Whether its head is out of attempts and holds the lane, as the manifest asks. */
  blocked = false;
  /** Whether its events on disk are being read. */
  reading = false;
  /** The queue of ready lanes that it is in, and its neighbours there. */
  list: Fifo<EventLane> | undefined;
  previous: EventLane | undefined;
  next: EventLane | undefined;
  private events: LaneEvent[] = [];
  private shelf: number[] = [];
  /** The last event that was shelved, while it is on disk alone. */
  private lastShelved: ShelvedTail | undefined;
  /** The bytes of the bodies on the shelf. */
  private shelfSize = 0;
  /** The index in `shelf` of the first event that was not taken back. */
  private shelfHead = 0;

  constructor(key: string) {
    this.key = key;
  }

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

  get isIdle(): boolean {
    return !this.running && this.backoff === undefined;
  }

  /** Whether its head could run and has not begun: it waits for nothing but its function's turn. */
  get isDue(): boolean {
    return this.backoff === undefined && this.debounce === undefined && this.head?.attempts === 0;
  }

  /** Whether lanes with live events go first, because its head was found by a list. */
  get isBulk(): boolean {
    const flags = this.head?.flags;
    return flags?.initial === true || flags?.synthetic === true;
  }

  /** The sequence of its first event that is on disk alone. */
  get firstShelved(): number | undefined {
    return this.shelf[this.shelfHead];
  }

  /** Returns its state; `undefined` if all of its events are on disk alone, or it is empty. */
  report(held: boolean): LaneReport | undefined {
    const { head, running, blocked, length: waiting } = this;
    if (!head) return undefined;
    const { type, attempts, view } = head;
    const retrying = this.backoff !== undefined;
    const requeued = retrying && attempts === 0 && head.interruptions === 0;
    return {
      waiting,
      head: { type, attempts, trigger: view.trigger.name },
      running,
      retrying,
      requeued,
      blocked,
      held,
    };
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

  private stateBefore({ view }: LaneEvent): ResourceVersion | undefined {
    const before = this.lastShelved?.event;
    return before?.view === view ? (before.deletedBy ?? before.meta.resourceVersion) : undefined;
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

/** Totals of a function's lanes; times are epoch milliseconds. */
interface LaneCounts {
  /** The number of events in memory, including running ones. */
  readonly queued: number;
  /** The number of lanes whose head is out of attempts and holds them. */
  readonly blocked: number;
  /** The arrival of the oldest event that is not done. */
  readonly oldestAt: number | undefined;
  /** The arrival of the oldest event that could run and has not begun. */
  readonly dueSince: number | undefined;
}

export function countLanes(lanes: Iterable<EventLane>): LaneCounts {
  let queued = 0;
  let blocked = 0;
  let oldestAt = Number.POSITIVE_INFINITY;
  let dueSince = Number.POSITIVE_INFINITY;
  for (const lane of lanes) {
    queued += lane.length;
    if (lane.blocked) blocked++;
    const receivedAt = lane.head?.receivedWall ?? Number.POSITIVE_INFINITY;
    oldestAt = Math.min(oldestAt, receivedAt);
    if (lane.isDue) dueSince = Math.min(dueSince, receivedAt);
  }
  return { queued, blocked, oldestAt: finite(oldestAt), dueSince: finite(dueSince) };
}

/** Counts events that are in memory alone, by view. */
export function inMemory(lanes: Iterable<EventLane>): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const lane of lanes) {
    for (const { place, view } of lane) if (place === "memory") counts.set(view.id, (counts.get(view.id) ?? 0) + 1);
  }
  return counts;
}

const finite = (at: number): number | undefined => (Number.isFinite(at) ? at : undefined);
