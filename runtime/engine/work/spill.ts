import type { Spilled, SpilledEvent } from "../../journal/batch.ts";
import type { Checkpoint } from "../../journal/checkpoint.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import { type Budget, BufferPins } from "./budget.ts";
import { type LaneEvent, type LoadedEvent, spilledEvent } from "./event.ts";

/** Limit on a function's events in memory, and on the bytes of their bodies. */
export interface MemoryLimit {
  readonly events: number;
  readonly bytes: number;
}

export const defaultMemoryLimit: MemoryLimit = { events: 1000, bytes: 32 * 1024 * 1024 };

/** Limit on lanes whose head waits long, with its body on disk alone. Each takes about half a kilobyte of memory. */
const stubLimit = 10_000;

/** Bytes of bodies that are read from disk in one piece, which takes 5 ms of the event loop. */
const pageBytes = 4 * 1024 * 1024;

/** Bytes of a row on disk in addition to its body: its header and its entries in two indices. */
const rowBytes = 512;

/**
 * Limit on the memory for a function's keys without an object, in bytes, with the same again on disk. At most a quarter of the
 * store.
 */
const mostKeyBytes = 16 * 1024 * 1024;

/** The share of a function's memory, or of its room on disk, that one lane may use if others need it. */
const laneShare = 0.25;
const leastLaneShare = 1 / 16;

/** The share of a function's memory up to which it is filled, at most, when a full function accepts events again. */
export const freeAt = 0.5;

/**
 * Milliseconds after which an unfinished event goes to disk, so that the low-water mark may pass it. An API server keeps 75 s of
 * history (`watch_cache_history.go`).
 */
export const pinnedMs = 60_000;

/** The parts of a function's spill. */
interface SpillParts {
  readonly functionName: string;
  readonly store: Checkpoint;
  readonly commits: Commits;
  /** By number. */
  readonly known: ReadonlyMap<number, KnownObjects>;
  /** The events of the function's live views in the store, and the bytes of their bodies. */
  readonly waiting: { readonly events: number; readonly bytes: number };
  readonly limit: MemoryLimit;
  readonly budgets: { readonly memory: Budget; readonly disk: Budget };
  /** Is charged for the event loop's time that reading back takes. */
  readonly time: Pick<LoopAccount, "once" | "each">;
}

/**
 * The part of a function's queue that is on disk. Events arrive with rising sequence, and those in memory precede those that
 * overflowed. So reading back in order of sequence never lets an event overtake another of its lane.
 */
export class Spill {
  /** Whether the disk takes what does not fit in memory. */
  readonly holdsQueues: boolean;
  private readonly functionName: string;
  private readonly store: Checkpoint;
  private readonly commits: Commits;
  private readonly known: ReadonlyMap<number, KnownObjects>;
  private readonly most: MemoryLimit;
  private readonly memory: Budget;
  private readonly disk: Budget;
  private readonly time: SpillParts["time"];
  private readonly chunks = new BufferPins();
  /** The number of events on disk alone, behind all that are in lanes. */
  private overflow: number;
  /** The number of events that were ever put there. */
  private puts = 0;
  /** The number of events on disk alone that have a place in their lanes. */
  private shelved = 0;
  /** The newest sequence that was read back into memory, or never was on disk. */
  private loaded = 0;
  private fresh = 0;
  private bytes = 0;
  private stubs = 0;
  private loading = false;
  private closed = false;
  /** Bytes that the function's events take in the store. */
  private stored = 0;
  /** Bytes that its keys without an object take, in memory and in the store each. */
  private keys = 0;

  constructor({ functionName, store, commits, known, waiting, limit, budgets, time }: SpillParts) {
    this.time = time;
    this.most = limit;
    this.memory = budgets.memory;
    this.disk = budgets.disk;
    this.memory.share(1);
    this.disk.share(1);
    this.functionName = functionName;
    this.store = store;
    this.holdsQueues = store.holdsQueues;
    this.commits = commits;
    this.known = known;
    this.overflow = waiting.events;
    this.keep(waiting.bytes + waiting.events * rowBytes);
  }

  /** The number of events that are on disk alone. */
  get waiting(): number {
    return this.overflow + this.shelved;
  }

  /** The limit on one lane's memory while others need it. */
  get laneLimit(): MemoryLimit {
    return this.part(laneShare);
  }

  /**
   * The limit on each lane's memory, for so many lanes, if memory is short and there is no disk. All of them together then take
   * half of it. If many are stuck, no single object is at fault: each keeps its least share, and the function waits.
   */
  fairLimit(lanes: number): MemoryLimit {
    return this.part(Math.max(leastLaneShare, Math.min(laneShare, freeAt / lanes)));
  }

  /** The limit on one lane's memory if no more of its function fits on disk. */
  get recordLimit(): MemoryLimit {
    return { ...this.laneLimit, bytes: this.roomOnDisk * laneShare };
  }

  private part(share: number): MemoryLimit {
    const { events, bytes } = this.limit;
    return { events: Math.max(1, Math.floor(events * share)), bytes: bytes * share };
  }

  /**
   * Its room on disk. Functions on a store that holds no queues share its room as they come: each takes at most a quarter of it.
   */
  private get roomOnDisk(): number {
    return this.holdsQueues ? this.disk.fairShare : this.store.spillLimit / 4;
  }

  /** Whether events wait behind all that are in lanes. */
  get overflows(): boolean {
    return this.overflow > 0;
  }

  /** Whether an event that existed when the function was loaded has been read, or is gone. */
  hasRead(sequence: number): boolean {
    return this.overflow === 0 || this.loaded >= sequence;
  }

  /** The share of the function's memory that is in use; 1 and more if something waits on disk. */
  get fill(): number {
    const { events, bytes } = this.limit;
    const share = Math.max(this.fresh / events, this.bytes / bytes);
    return this.overflow > 0 ? Math.max(1, share) : share;
  }

  /** Whether the function's share of the disk is used up. */
  get isSpent(): boolean {
    return this.disk.isSpent(this.stored);
  }

  /** Whether a lane with so much on disk exceeds what it may keep there while others need the function's room. */
  isCrowdedBy({ events, bytes }: MemoryLimit): boolean {
    return this.disk.isShort(this.stored, freeAt) && bytes + events * rowBytes > this.roomOnDisk * leastLaneShare;
  }

  /** Drops a shelved event that a newer one replaces. */
  dropShelved(event: LaneEvent): void {
    this.shelved--;
    this.keep(-event.size - rowBytes);
    this.commits.dropSpilled(this.functionName, event.sequence);
  }

  /** Counts keys without an object: so many bytes in memory, and as many on disk. A negative number releases them. */
  holdKeys(bytes: number): void {
    this.keys += bytes;
    if (this.closed) return;
    this.memory.hold(bytes);
    this.disk.hold(bytes);
  }

  /** Whether keys have reached their limit, or other functions need what exceeds the function's share. */
  get isFullOfKeys(): boolean {
    const { keys, memory, disk, store } = this;
    if (keys === 0) return false;
    return keys >= Math.min(mostKeyBytes, store.spillLimit / 4) || memory.isSpent(keys) || disk.isSpent(keys);
  }

  /** The bytes that its events take on disk. */
  get onDisk(): number {
    return this.stored;
  }

  /** The share of its part of the disk that is in use; 1 and more only if others need theirs. */
  get diskFill(): number {
    return this.stored / this.disk.fairShare;
  }

  /** Whether the next event must go to disk: memory is full, or earlier events are there. */
  get isFull(): boolean {
    if (this.overflow > 0) return true;
    if (!this.holdsQueues) return false;
    const { events, bytes } = this.limit;
    const isFull = this.fresh >= events || this.bytes >= bytes || this.stubs >= stubLimit;
    return isFull || this.memory.isSpent(this.bytes);
  }

  /** Puts an event on disk instead of into its lane. */
  put(event: SpilledEvent): void {
    if (this.overflow === 0) this.loaded = event.sequence - 1;
    this.overflow++;
    this.puts++;
    this.keep(event.body.length + rowBytes);
    this.commits.putSpilled(event);
  }

  /** Puts an event on disk, in the place that its lane has for it. */
  putShelved(event: SpilledEvent): void {
    this.shelved++;
    this.keep(event.body.length + rowBytes);
    this.commits.putSpilled(event);
  }

  /** Records that an event is in its lane's memory. */
  entered(event: LaneEvent): void {
    this.fresh++;
    this.hold(this.chunks.hold(event));
  }

  /** Records that an event is terminal. */
  left(event: LaneEvent): void {
    this.releaseMemory(event);
    if (event.place === "memory") return;
    this.keep(-event.size - rowBytes);
    this.commits.dropSpilled(this.functionName, event.sequence);
  }

  /** Removes an event that is on disk from its lane's memory. The lane keeps its place. */
  shelve(event: LaneEvent): void {
    this.releaseMemory(event);
    this.shelved++;
  }

  private releaseMemory(event: LaneEvent): void {
    const bytes = this.chunks.release(event);
    if (event.place === "disk") this.stubs--;
    else {
      this.fresh--;
      this.hold(-bytes);
    }
  }

  /** Releases everything that the function holds, when it is unloaded. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.memory.hold(-this.bytes - this.keys);
    this.memory.share(-1);
    this.disk.hold(-this.stored - this.keys);
    this.disk.share(-1);
  }

  /** Writes an event that holds the mark to disk, and lets the mark pass. If the share is used up, the mark waits. */
  pin(event: LaneEvent): void {
    if (event.place === "memory" && this.hasRoomFor(event.size)) this.write(event);
  }

  /**
   * Pins consecutive events of a lane, up to the first without room, because a lane has no holes. Returns whether all fit.
   * @param commitBytes "more" is returned once the next commit has so many bytes: the rest belongs into later ones. Default: all
   * go into one commit
   */
  pinAll(events: Iterable<LaneEvent>, commitBytes = Number.POSITIVE_INFINITY): "all" | "full" | "more" {
    for (const event of events) {
      if (event.place !== "memory") continue;
      if (this.commits.pendingBytes >= commitBytes) return "more";
      this.pin(event);
      if (event.place === "memory") return "full";
    }
    return "all";
  }

  /** Stores an event with the time at which it is to run again. Once it is on disk, a restart waits for that time, too. */
  defer(event: LaneEvent): void {
    if (event.place === "memory") this.pin(event);
    else this.rewrite(event);
  }

  /** Writes an event to disk because a later one of its lane goes there, whatever the share: a lane has no holes. */
  write(event: LaneEvent): void {
    if (event.place !== "memory") return;
    this.keep(event.size + rowBytes);
    this.commits.putSpilled(spilledEvent(event));
    event.place = "both";
    if (event.redeliveryRisk === "unpersisted") event.redeliveryRisk = "persisted";
    event.mark?.owner.settle(event.mark.entry);
    event.mark = undefined;
  }

  /** Writes the current state of an event that is on disk. */
  rewrite(event: LaneEvent): void {
    this.commits.putSpilled(spilledEvent(event));
  }

  /** Releases the body of an event that will wait, if the disk has it. Each attempt reads it back. */
  release(event: LaneEvent): void {
    if (event.place === "memory") return;
    const bytes = this.chunks.release(event);
    event.body = undefined;
    if (event.place === "disk") return;
    event.place = "disk";
    this.fresh--;
    this.hold(-bytes);
    this.stubs++;
  }

  /** Reads the body of an event that was released. */
  async body(event: LaneEvent): Promise<Buffer> {
    const [found] = await this.read([event.sequence]);
    return found?.body ?? Buffer.alloc(0);
  }

  /** Reads shelved events back for their lane, by rising sequence. */
  async takeBack(sequences: readonly number[]): Promise<readonly LoadedEvent[]> {
    const events = await this.read(sequences);
    this.shelved -= events.length;
    return events;
  }

  private async read(sequences: readonly number[]): Promise<readonly LoadedEvent[]> {
    await this.commits.flush();
    const found: SpilledEvent[] = [];
    while (found.length < sequences.length) {
      const first = sequences[found.length] ?? 0;
      // Consecutive ones are read together.
      const run = sequences.slice(found.length).findIndex((sequence, index) => sequence !== first + index);
      const count = run < 0 ? sequences.length - found.length : run;
      const rows = await this.page(first - 1, count);
      const events = rows.filter((row) => row.kind !== "key");
      if (events.length < count || events.some(({ sequence }, index) => sequence !== first + index)) {
        throw new Error(`a spilled event from ${first} to ${first + count - 1} is missing`);
      }
      found.push(...events);
    }
    const loaded: LoadedEvent[] = [];
    await this.time.each("rows", found, (event) => loaded.push(this.toCurrentForm(event)) > 0);
    return loaded;
  }

  private page(after: number, most: number, bytes?: number): Promise<readonly Spilled[]> {
    return this.time.once("rows", () => this.store.spilled(this.functionName, after, most, bytes));
  }

  /**
   * Converts an event's body to the current form of the trigger's objects. A body that cannot be converted is left out; the
   * object is then fetched before the attempt.
   */
  private toCurrentForm(event: SpilledEvent): LoadedEvent {
    const { body: written, form, type, flags, replayed } = event;
    const size = written.length;
    const now = this.known.get(event.view)?.form;
    // The manifest that wrote a deletion that was found may have stored more of the object.
    const body = type === "Deleted" && flags.finalStateUnknown && now && size > 0 ? now.atMost(written) : written;
    if (!now || event.kind === "tick" || form === now.ofEvents) return { ...event, body, size, isUnselected: false };
    // A dead letter that was put back is delivered whatever the manifest selects by now.
    const isUnselected = (!replayed || flags.reason === "edited") && !now.selects(event, form);
    const loaded = { ...event, body, size, isUnselected, form: now.ofEvents };
    const same = size === 0 ? body : now.eventBody(body, form);
    if (same === body) return loaded;
    const edited = { synthetic: true, reason: "edited", ...(type === "Deleted" && { finalStateUnknown: true }) };
    const remains = same ?? (type === "Deleted" ? now.remains(body) : Buffer.alloc(0));
    // An event without a form is of an older runtime; most of those have not changed.
    const oldBody = form === undefined && remains.equals(body) ? event.oldBody : undefined;
    return { ...loaded, body: remains, oldBody, flags: same ? flags : { ...flags, ...edited } };
  }

  /**
   * Reads events back, in order, as far as memory allows. Does nothing while another call reads.
   * @param give takes an event into its lane, or shelves it
   */
  async load(give: (event: LoadedEvent) => "taken" | "shelved"): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      while (this.overflow > 0 && this.hasRoom && !this.closed) {
        const { puts } = this;
        await this.commits.flush();
        const { events: atMost, bytes } = this.limit;
        const events = await this.page(this.loaded, atMost / 2, Math.min(pageBytes, bytes / 2));
        if (events.length === 0) {
          // The events that were counted when the function was loaded had ended: a commit that failed at first has deleted their
          // rows since.
          if (puts === this.puts) this.overflow = 0;
          return;
        }
        await this.time.each("rows", events, (event) => {
          if (this.closed || this.bytes >= this.limit.bytes || this.memory.isSpent(this.bytes)) return false;
          // A newer event may have been written and loaded since the page was read.
          this.loaded = Math.max(this.loaded, event.sequence);
          // The row of a key is not an event; the key's queue has it.
          if (!this.known.has(event.view) || event.kind === "key") return true;
          this.overflow--;
          if (give(this.toCurrentForm(event)) === "shelved") this.shelved++;
          return true;
        });
      }
    } finally {
      this.loading = false;
    }
  }

  /** Whether so many more bytes of the function fit on disk. */
  hasRoomFor(bytes: number): boolean {
    return this.holdsQueues ? !this.isSpent : this.stored + bytes <= this.roomOnDisk;
  }

  /**
   * The limit on memory. An event may overflow together with all that waits in memory before it in its lane, so at most half of
   * the disk's room.
   */
  private get limit(): MemoryLimit {
    const { most, store, holdsQueues } = this;
    const bytes = holdsQueues ? store.spillLimit / 2 : Number.POSITIVE_INFINITY;
    return bytes < most.bytes ? { events: most.events, bytes } : most;
  }

  private get hasRoom(): boolean {
    if (!this.holdsQueues) return this.bytes < this.limit.bytes && !this.memory.isSpent(this.bytes);
    const { events, bytes } = this.limit;
    const room = this.fresh <= events / 2 && this.bytes <= bytes / 2 && this.stubs < stubLimit;
    return room && !this.memory.isSpent(this.bytes);
  }

  private hold(bytes: number): void {
    this.bytes += bytes;
    if (!this.closed) this.memory.hold(bytes);
  }

  private keep(bytes: number): void {
    this.stored += bytes;
    if (!this.closed) this.disk.hold(bytes);
  }
}
