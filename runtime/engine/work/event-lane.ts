import type { Timer } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { LaneEvent } from "./event.ts";
import type { Fifo, FifoItem } from "./ready-queue.ts";
import type { MemoryLimit } from "./spill.ts";

/** Bytes of the bodies of some events. */
export const sizeOf = (events: readonly { readonly size: number }[]): number =>
  events.reduce((sum, { size }) => sum + size, 0);

/** An event that is on disk alone, behind all others of its lane. */
interface ShelvedTail {
  readonly event: LaneEvent;
  /** The state that its handler is told before it; undefined where that is not known. */
  readonly from: ResourceVersion | undefined;
}

/** How a lane stands, for a person. */
export interface LaneReport {
  /** Events in memory, the head among them; more may be on disk. */
  readonly waiting: number;
  readonly head: Pick<LaneEvent, "type" | "attempts"> & { readonly trigger: string };
  /** Its head is in a handler, or about to be. */
  readonly running: boolean;
  /** Its head was attempted, and waits for the next time. */
  readonly retrying: boolean;
  /** It waits since its handler asked to be run again later, and nothing failed. */
  readonly requeued: boolean;
  /** Its head is out of attempts and holds the lane. */
  readonly blocked: boolean;
  /** No attempt of the function begins at present. */
  readonly held: boolean;
}

/**
 * The events of one object for one function, in order; one of them at a time is in a handler. The first are in memory, those
 * behind them may be on disk alone, of which it keeps the sequences.
 */
export class EventLane implements FifoItem<EventLane> {
  readonly key: string;
  /** Its head is in a handler, or about to be. */
  running = false;
  /** Waits for the next attempt at its head. */
  backoff: Timer | undefined;
  /** Waits until its object was quiet. */
  quiet: Timer | undefined;
  /** When the first event came of those that wait, one that gave way to a newer one included; monotonic milliseconds. */
  since: number | undefined;
  /** Its head is out of attempts and holds the lane, as the manifest asks. */
  blocked = false;
  /** What it has on disk is being read. */
  reading = false;
  /** The line of those that could run, and its neighbours there. */
  line: Fifo<EventLane> | undefined;
  before: EventLane | undefined;
  behind: EventLane | undefined;
  private events: LaneEvent[] = [];
  private shelf: number[] = [];
  /** The last one that was shelved, while it is; its body is on disk alone. */
  private lastShelved: ShelvedTail | undefined;
  /** Bytes of the bodies of those on the shelf. */
  private shelfSize = 0;
  /** Those of `shelf` before it were taken back. */
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

  /** How many of its events are in memory. */
  get length(): number {
    return this.events.length;
  }

  get isIdle(): boolean {
    return !this.running && this.backoff === undefined;
  }

  /** Its head was never begun and could be: it waits for nothing but its function's turn. */
  get isDue(): boolean {
    return this.backoff === undefined && this.quiet === undefined && this.head?.attempts === 0;
  }

  /** Whether live events go first; an event found by a list gives way to other lanes. */
  get isBulk(): boolean {
    const flags = this.head?.flags;
    return flags?.initial === true || flags?.synthetic === true;
  }

  /** The sequence of the first of its events that are on disk alone. */
  get firstShelved(): number | undefined {
    return this.shelf[this.shelfHead];
  }

  /** Undefined where nothing of it is in memory. */
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
    // Most lanes have one event; an array that grows from none takes room for seventeen.
    if (this.events.length === 0) this.events = [event];
    else this.events.push(event);
  }

  shift(): void {
    this.events.shift();
    this.since = this.head?.receivedAt;
  }

  /** Takes the tail away. */
  pop(): void {
    this.events.pop();
  }

  /** Takes events away that are not its head. */
  remove(gone: ReadonlySet<LaneEvent>): void {
    this.events = this.events.filter((event) => !gone.has(event));
  }

  /** Notes an event behind all others that is on disk alone. `from`: the state that its handler is told before it. */
  shelve(event: LaneEvent, from = this.stateBefore(event)): void {
    this.shelf.push(event.sequence);
    this.shelfSize += event.size;
    event.body = undefined;
    this.lastShelved = { event, from };
  }

  /** The last of its shelf; undefined while that may be among what is read. */
  get shelvedTail(): ShelvedTail | undefined {
    return this.reading ? undefined : this.lastShelved;
  }

  /** How many events are on its shelf, and the bytes of their bodies. */
  get shelved(): MemoryLimit {
    return { events: this.shelf.length - this.shelfHead, bytes: this.shelfSize };
  }

  /** Takes the last of its shelf away. */
  unshelve({ size }: LaneEvent): void {
    this.shelf.pop();
    this.shelfSize -= size;
    this.lastShelved = undefined;
  }

  private stateBefore({ view }: LaneEvent): ResourceVersion | undefined {
    const before = this.lastShelved?.event;
    return before?.view === view ? (before.deletedBy ?? before.meta.resourceVersion) : undefined;
  }

  /** Takes all but its first events out of memory: they are on disk alone from now on. Gives them. */
  shelveFrom(kept: number): readonly LaneEvent[] {
    const taken = this.events.splice(kept);
    this.shelf = [...taken.map(({ sequence }) => sequence), ...this.shelf.slice(this.shelfHead)];
    this.shelfHead = 0;
    this.shelfSize += sizeOf(taken);
    return taken;
  }

  /** The sequences of the events that come next from disk, at most so many. */
  nextShelved(count: number): readonly number[] {
    return this.shelf.slice(this.shelfHead, this.shelfHead + count);
  }

  /** So many of them are about to be pushed, with bodies of so many bytes. */
  takeBack(count: number, size: number): void {
    this.shelfHead += count;
    this.shelfSize -= size;
    if (this.firstShelved === undefined) this.lastShelved = undefined;
    // Amortised: the array is cut when more than half of it is behind the head.
    if (this.shelfHead * 2 <= this.shelf.length) return;
    this.shelf = this.shelf.slice(this.shelfHead);
    this.shelfHead = 0;
  }

  /** How many of its events, from the head on, fit into a limit; the head always does. */
  within({ events, bytes }: MemoryLimit): number {
    let size = 0;
    const over = this.events.findIndex((event, index) => {
      size += event.size;
      return index >= events || size > bytes;
    });
    return over < 0 ? this.length : Math.max(1, over);
  }

  /**
   * Its events up to the last one that was received by `limit`, or is old anyway. So their order on disk has no
   * holes.
   */
  pinned(limit: number): readonly LaneEvent[] {
    const isPinned = ({ receivedAt, mark }: LaneEvent) => receivedAt <= limit || mark?.owner.isBacklog(mark.entry);
    return this.events.slice(0, this.events.findLastIndex(isPinned) + 1);
  }

  /** Up to the last one that a process before this one may have handled, of which nothing on disk says so. */
  get unnoted(): readonly LaneEvent[] {
    return this.events.slice(0, this.events.findLastIndex(({ doubt }) => doubt === "unnoted") + 1);
  }

  [Symbol.iterator](): Iterator<LaneEvent> {
    return this.events[Symbol.iterator]();
  }
}

/** How a function's lanes stand, together; times are epoch milliseconds. */
interface LaneCounts {
  /** Events in memory, those that run among them. */
  readonly queued: number;
  /** Lanes whose head is out of attempts and holds them. */
  readonly blocked: number;
  /** When the oldest event came that is not done. */
  readonly oldestAt: number | undefined;
  /** The same of those that could run, and were not begun. */
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

/** How many events are in memory alone, by view. */
export function inMemory(lanes: Iterable<EventLane>): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const lane of lanes) {
    for (const { place, view } of lane) if (place === "memory") counts.set(view.id, (counts.get(view.id) ?? 0) + 1);
  }
  return counts;
}

const finite = (at: number): number | undefined => (Number.isFinite(at) ? at : undefined);
