import type { Clock, Timer } from "../../base/clock.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { SpilledEvent } from "../../journal/batch.ts";
import type { Commits } from "../commit/commits.ts";
import type { EngineLog, EngineObserver, EventOutcome } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import type { HeldBack } from "../filter/reason.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { FilteredEventFields } from "../state/object-state.ts";
import type { Attempts, Conclusion } from "./attempt.ts";
import { Backlogs, givesWay } from "./backlog.ts";
import { Backpressure } from "./backpressure.ts";
import { holdOf, type LaneEvent, type LoadedEvent, releaseMark, spilledEvent } from "./event.ts";
import { EventLane, inMemory, sizeOf } from "./event-lane.ts";
import type { FairShare } from "./fair-scheduler.ts";
import type { LaneReport, Waits } from "./lane.ts";
import { MarkPins } from "./mark-pins.ts";
import { debounceWaitMs, msUntil } from "./retry.ts";
import { type MemoryLimit, pinnedMs, type Spill } from "./spill.ts";
import { type Turn, WorkQueue } from "./work-queue.ts";

interface QueueParts {
  readonly attempts: Attempts;
  readonly spill: Spill;
  /** The limit on its events in memory. */
  readonly memoryLimit: MemoryLimit;
  /** Its share of the turns of all functions. */
  readonly share: FairShare;
  /** Restores an event that was spilled. */
  readonly restore: (event: LoadedEvent) => LaneEvent;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/** The interval between searches for events that hold the mark, in milliseconds. */
const pinCheckMs = 5_000;

/** The delay before a failed read from the store is retried, in milliseconds. */
const storeRetryMs = 1_000;

const laneKeyOf = ({ objects, key }: Pick<LaneEvent, "objects" | "key">): string => `${objects.resource}/${key}`;

/** One function's events, with a lane for each object: keeps them within the limits on memory and disk. */
export class EventQueue extends WorkQueue<LaneEvent, EventLane> {
  private readonly parts: QueueParts;
  private readonly backpressure: Backpressure;
  private readonly backlogs: Backlogs;
  private readonly pins: MarkPins;
  private pinTimer: Timer | undefined;

  constructor(parts: QueueParts) {
    const { attempts, spill, clock, share, memoryLimit } = parts;
    super(attempts, clock);
    this.parts = parts;
    this.backpressure = new Backpressure(clock, spill, memoryLimit, { ready: this.ready, share });
    this.backlogs = new Backlogs({ ...parts, functionName: this.parts.attempts.code.manifest.name });
    this.pins = new MarkPins({
      ...parts,
      lanes: this.lanes,
      backlogs: this.backlogs,
      isStopped: () => this.isStopped,
      rest: (lane) => this.rest(lane),
    });
  }

  /** Returns counts for the status, with times in wall-clock milliseconds. */
  counts() {
    return { ...this.count(this.lanes.values()), spilled: this.parts.spill.waiting, full: this.backpressure.isFull };
  }

  /** Counts events that are in memory alone, by view. */
  inMemory(): ReadonlyMap<number, number> {
    return inMemory(this.lanes.values());
  }

  /** Returns the state of an object's lane; `undefined` if no event of it is in memory. */
  lane(objects: KnownObjects, key: string): LaneReport | undefined {
    return this.report(laneKeyOf({ objects, key }));
  }

  /** Whether an object's lane has events. */
  holds(objects: KnownObjects, key: string): boolean {
    return this.lanes.has(laneKeyOf({ objects, key }));
  }

  /** A pending promise while sources should wait. */
  get congested(): Promise<void> | undefined {
    return this.backpressure.congested;
  }

  /** Whether the disk takes what does not fit in memory. */
  get holdsQueues(): boolean {
    return this.parts.spill.holdsQueues;
  }

  /** A pending promise while the function accepts nothing at all. */
  full(isListing: boolean): Promise<void> | undefined {
    if (this.backpressure.isShort) this.shareMemory();
    return this.backpressure.full(isListing);
  }

  /** Whether an event waits that an earlier process may have handled without a record on disk. */
  get hasUnpersistedRisk(): boolean {
    for (const lane of this.lanes.values()) if (lane.withUnpersistedRisk.length > 0) return true;
    return false;
  }

  /**
   * Persists unpersisted risks at shutdown, so that the next process does not have to treat every event as a possible redelivery.
   */
  private persistRedeliveryRisks(): void {
    const { spill } = this.parts;
    for (const lane of this.lanes.values()) {
      spill.pinAll(lane.withUnpersistedRisk);
    }
  }

  /**
   * Returns the verdict on a new event; `undefined` if the function has used its share of time, or judging takes long. Then it is
   * judged later.
   */
  judge(objects: KnownObjects, judged: FilteredEventFields, body: Buffer): Verdict | undefined {
    return this.parts.share.time.mayBegin() ? objects.judgeAtOnce(judged, body) : undefined;
  }

  /**
   * Returns the condition that is false for a state of an object, if there is one, and if the function has time to evaluate it
   * now.
   */
  refuses(objects: KnownObjects, change: Change): HeldBack | undefined {
    return this.parts.share.time.mayBegin() ? objects.refuses(change) : undefined;
  }

  /** Accepts an event. Synchronous; never refuses. */
  accept(event: LaneEvent): void {
    const { objects, key, body } = event;
    if (!event.replayed) {
      if (body && objects.judgesAtOnce(key) && objects.isIdle(key)) {
        event.verdict ??= this.judge(objects, event, body);
        if (event.verdict?.deliver === false) {
          this.settle(event, "filtered", objects.apply(event, body, event.verdict, holdOf(event)));
          return;
        }
      }
      const { type, meta, deletedBy, epoch } = event;
      objects.expect({ type, key, uid: meta.uid, resourceVersion: meta.resourceVersion, deletedBy, epoch });
    }
    const { spill } = this.parts;
    if (spill.isFull && !spill.overflows) this.makeRoom();
    const lane = this.laneOf(event);
    const { head } = lane;
    // A requeue time from before an edit of mode Reconcile gives way to a change of the object, as it did in that mode.
    if (!event.replayed && head?.notBefore !== undefined && head.attempts === 0 && head.flags.reason === "edited") {
      head.notBefore = undefined;
      if (lane.isBackingOff) this.wake(lane);
    }
    if (spill.isFull) this.overflow(lane, event);
    else if (lane.firstShelved !== undefined) this.shelve(lane, event);
    else this.enter(lane, event);
  }

  /** Writes backlog events that hold the mark to disk. Returns a promise of the rest if they take several commits. */
  keepBacklog(): Promise<void> | undefined {
    return this.pins.keepBacklog();
  }

  /**
   * Makes the waiting events in memory hold this mark instead of theirs, for a trigger's objects in one namespace or ("") in all.
   */
  adopt(objects: KnownObjects, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void {
    for (const event of [...this.lanes.values()].flatMap((lane) => [...lane])) {
      if (event.objects !== objects || event.place !== "memory" || event.replayed) continue;
      if (namespace !== "" && event.meta.namespace !== namespace) continue;
      mark.entry.outstanding++;
      event.mark?.owner.settle(event.mark.entry);
      event.mark = mark;
    }
  }

  /** Whether the disk has room for another event of so many bytes that did not come from a source. */
  takesReplay(bytes: number): boolean {
    return this.parts.spill.hasRoomFor(bytes);
  }

  /** Accepts a spilled event that is written, or about to be. It runs after the events spilled before it. */
  acceptSpilled(event: SpilledEvent): void {
    this.parts.spill.put(event);
    void this.refill();
  }

  /** Starts reading spilled events. */
  start(): void {
    void this.refill();
  }

  /** Stops all attempts. Resolves when nothing runs. */
  override async stop(): Promise<void> {
    this.backpressure.stop();
    this.parts.spill.close();
    this.pinTimer?.cancel();
    await super.stop();
    this.persistRedeliveryRisks();
  }

  private laneOf(event: LaneEvent): EventLane {
    const key = laneKeyOf(event);
    const found = this.lanes.get(key);
    if (found) return found;
    const lane = new EventLane(key);
    this.lanes.set(key, lane);
    return lane;
  }

  /** Puts the event on disk, behind all that are in lanes. */
  private overflow(lane: EventLane, event: LaneEvent): void {
    // Earlier events of its lane must be on disk too: after a crash they could not be put back in front.
    for (const before of lane) this.parts.spill.write(before);
    this.parts.spill.put(spilledEvent(event));
    this.spilled(event);
    if (lane.length === 0 && lane.firstShelved === undefined) this.lanes.delete(lane.key);
    // If nothing runs, no ending event would trigger the read of this one.
    if (this.lanes.size === 0) void this.refill();
  }

  /** Puts the event on disk, behind others of its lane that are there. */
  private shelve(lane: EventLane, event: LaneEvent): void {
    const { spill } = this.parts;
    const from = this.backlogs.collapseShelved(lane, event);
    spill.putShelved(spilledEvent(event));
    this.spilled(event);
    lane.shelve(event, from);
  }

  private spilled(event: LaneEvent): void {
    this.parts.observer.spilled?.(event.objects.functionName, event.objects.trigger.name);
    event.mark?.owner.settle(event.mark.entry);
  }

  private enter(lane: EventLane, event: LaneEvent): void {
    if (this.parts.attempts.code.manifest.delivery.mode === "Latest") this.coalesce(lane, event);
    lane.push(event);
    this.parts.spill.entered(event);
    if (lane.length === 1 && !lane.running && !lane.waits) this.ready.add(lane);
    this.watchPins();
    this.pump();
  }

  /**
   * Collapses what waits in lanes beyond their shares, if memory is short and there is no disk, before the whole function has to
   * wait. Lanes that wait for a retry divide a share among them. Any other lane may keep a full lane's share: if many do, the
   * function is merely slow, and its sources wait for it.
   */
  private shareMemory(): void {
    const { spill } = this.parts;
    const lanes = [...this.lanes.values()];
    const stuck = spill.fairLimit(lanes.filter(({ isBackingOff }) => isBackingOff).length);
    const running = spill.fairLimit(1);
    for (const lane of lanes) this.backlogs.collapse(lane, lane.within(lane.isBackingOff ? stuck : running));
  }

  /** Frees memory when it is full: lanes that wait for a retry keep only their head in memory, all others at most their share. */
  private makeRoom(): void {
    const { laneLimit } = this.parts.spill;
    for (const lane of this.lanes.values()) {
      if (lane.isBackingOff) this.rest(lane);
      else this.trim(lane, lane.within(laneLimit));
    }
  }

  /** Reduces a lane that will wait long to its head in memory, without the head's body. */
  private rest(lane: EventLane): void {
    const { spill } = this.parts;
    this.trim(lane, 1);
    const { head } = lane;
    if (!head) return;
    spill.pin(head);
    if (lane.isBackingOff) spill.release(head);
  }

  /** Keeps the lane's first events in memory, and the others on disk alone. */
  private trim(lane: EventLane, kept: number): void {
    const { spill } = this.parts;
    // While the lane's next events are read from disk, nothing is shelved in front of them.
    if (lane.length <= kept || lane.reading || !spill.holdsQueues) return;
    if (spill.pinAll(lane) !== "all") return;
    for (const event of lane.shelveFrom(kept)) spill.shelve(event);
  }

  /** Drops a waiting Modified that was never begun in favour of a newer one of the same object. */
  private coalesce(lane: EventLane, next: LaneEvent): void {
    const { tail } = lane;
    if (!tail || !givesWay(tail, next) || (lane.running && lane.head === tail)) return;
    lane.pop();
    this.parts.spill.left(tail);
    tail.objects.leave(tail.key);
    this.settle(tail, "dropped");
  }

  protected take(lane: EventLane): Turn {
    const { attempts, share } = this.parts;
    const { head } = lane;
    if (!head) return "taken";
    if (attempts.refuses(head)) return "passed";
    if (this.inProgress >= attempts.limitFor(head)) return "full";
    const takesTurns = attempts.takesTurns && !share.isStuck;
    if (!share.time.mayBegin() || (takesTurns && !share.time.isInTurn && !share.mayBegin())) return "full";
    if (this.isEarly(lane, head)) return "taken";
    return this.run(lane, head, takesTurns ? share.enter() : undefined);
  }

  /** Whether the head must wait, because its handler asked for a later time, or its object still changes. Starts the wait. */
  private isEarly(lane: EventLane, event: LaneEvent): boolean {
    if (event.notBefore === undefined) return this.isDebouncing(lane, event);
    const waitMs = msUntil(event.notBefore, event.receivedWall, this.parts.clock);
    if (waitMs > 0) this.retryAfter(lane, event, event.attempts > 0 ? "retry" : "requeue", waitMs);
    return waitMs > 0;
  }

  /** Whether the object still changes. Only a first attempt waits for that, and only at a change that was not on disk. */
  private isDebouncing(lane: EventLane, head: LaneEvent): boolean {
    const { clock, attempts } = this.parts;
    const { debounceMs } = attempts;
    if (debounceMs === undefined || head.kind === "tick") return false;
    if (head.attempts > 0 || head.interruptions > 0 || head.place !== "memory") return false;
    const { since = head.receivedAt, tail = head } = lane;
    const waitMs = debounceWaitMs(debounceMs, since, tail.receivedAt, clock.monotonic());
    // Changes that arrive meanwhile are considered when the wait is over.
    if (waitMs > 0) this.wait(lane, "debounce", waitMs);
    return waitMs > 0;
  }

  protected returned(counted: number | undefined): void {
    const { share, attempts } = this.parts;
    share.leave(counted);
    // Events in progress may take as long as this one did, so other functions do not wait for them.
    if (!attempts.takesTurns) share.writeOff();
    this.backpressure.moved();
  }

  protected conclude(lane: EventLane, event: LaneEvent, conclusion: Conclusion): void {
    if (conclusion.type === "terminal") {
      if (conclusion.letter) this.parts.commits.putDeadLetter(conclusion.letter);
      this.finish(lane, event, conclusion.outcome);
    } else if (conclusion.type === "again") {
      lane.blocked = conclusion.blocked;
      this.retryAfter(lane, event, conclusion.why, conclusion.afterMs);
      if (lane.waits) return;
    }
    if (lane.length > 0) this.ready.add(lane);
    else if (lane.firstShelved === undefined) this.lanes.delete(lane.key);
    if (lane.firstShelved !== undefined) void this.takeBack(lane);
    if (this.parts.spill.overflows) void this.refill();
  }

  private retryAfter(lane: EventLane, event: LaneEvent, why: Waits, delayMs: number): void {
    const { spill } = this.parts;
    spill.release(event);
    this.wait(lane, why, delayMs);
    if (this.isStopped || !spill.isFull) return;
    this.rest(lane);
    void this.refill();
  }

  private wake(lane: EventLane): void {
    this.endWait(lane);
    this.pump();
  }

  /** Ends a terminal event. Everything that records its end goes into one commit. */
  private finish(lane: EventLane, event: LaneEvent, outcome: EventOutcome): void {
    lane.shift();
    lane.blocked = false;
    this.parts.spill.left(event);
    this.backpressure.left(event.size);
    const { journalRow: row, objects, body, verdict, key, id, shown, meta } = event;
    let holdsMark = false;
    if (!event.replayed) {
      objects.leave(event.key);
      if (body && verdict) holdsMark = objects.apply(event, body, verdict, holdOf(event));
    }
    if (row !== undefined) objects.settle({ key, id, uid: meta.uid, row, shown });
    this.settle(event, outcome, holdsMark);
  }

  private settle(event: LaneEvent, outcome: EventOutcome, holdsMark = false): void {
    const heldBack = outcome === "filtered" ? event.verdict?.heldBack : undefined;
    if (heldBack) event.objects.history.held(event, heldBack, this.parts.clock.now());
    if (!holdsMark) releaseMark(event);
    this.parts.observer.event?.(event.objects.functionName, event.objects.trigger.name, event.type, outcome);
  }

  private async refill(): Promise<void> {
    const { spill, restore } = this.parts;
    if (this.isStopped || !spill.overflows) return;
    const { events } = spill.laneLimit;
    const give = (stored: LoadedEvent) => {
      const event = restore(stored);
      const lane = this.laneOf(event);
      const fits = lane.firstShelved === undefined && lane.length < events && !lane.isBackingOff;
      if (fits || !spill.holdsQueues) {
        this.enter(lane, event);
        return "taken";
      }
      const from = this.backlogs.collapseShelved(lane, event);
      if (from) spill.rewrite(event);
      lane.shelve(event, from);
      return "shelved";
    };
    await this.reading(
      () => spill.load(give),
      () => this.refill(),
    );
  }

  /** Reads a lane's next events that are on disk alone, once few are left in memory. */
  private async takeBack(lane: EventLane): Promise<void> {
    const { spill, restore } = this.parts;
    const { events } = spill.laneLimit;
    if (this.isStopped || lane.reading || lane.firstShelved === undefined || lane.length > events / 2) return;
    lane.reading = true;
    const hasRead = await this.reading(
      async () => {
        // The head needs no room: without it the lane would not progress.
        const back = await spill.takeBack(lane.nextShelved(spill.isFull ? 1 : Math.ceil(events / 2)));
        lane.takeBack(back.length, sizeOf(back));
        for (const event of back) this.enter(lane, restore(event));
      },
      () => this.takeBack(lane),
    );
    lane.reading = false;
    // The events read may have ended already, and asked for more meanwhile.
    if (hasRead) void this.takeBack(lane);
  }

  /** Returns whether `read` succeeded; otherwise schedules `again`. */
  private async reading(read: () => Promise<void>, again: () => Promise<void>): Promise<boolean> {
    try {
      await read();
      return true;
    } catch (error) {
      const { log, clock } = this.parts;
      log.error(
        { function: this.parts.attempts.code.manifest.name, error: String(error) },
        "spilled events could not be read",
      );
      clock.after(storeRetryMs, () => void again(), { unref: true });
      return false;
    }
  }

  /** Searches at intervals for events that have held the mark for too long. */
  private watchPins(): void {
    if (this.pinTimer || this.isStopped) return;
    const { clock } = this.parts;
    this.pinTimer = clock.after(
      pinCheckMs,
      () => {
        this.pinTimer = undefined;
        void this.pins.pinLong(clock.monotonic() - pinnedMs);
        void this.refill();
        if (this.lanes.size > 0) this.watchPins();
      },
      { unref: true },
    );
  }
}
