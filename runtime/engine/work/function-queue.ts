import type { Clock, Timer } from "../../base/clock.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { SpilledEvent } from "../../journal/batch.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import { YoungMap } from "../../v8/young-map.ts";
import type { Commits } from "../commit/commits.ts";
import type { EngineLog, EngineObserver, EventOutcome } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import type { HeldBack } from "../filter/reason.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { FilteredEventFields } from "../state/object-event.ts";
import type { AttemptListener, Attempts, Conclusion } from "./attempt.ts";
import { type Backlogs, givesWay } from "./backlog.ts";
import type { Backpressure } from "./backpressure.ts";
import { holdOf, type LaneEvent, type LoadedEvent, releaseMark, spilledEvent } from "./event.ts";
import { countLanes, EventLane, inMemory, type LaneReport, sizeOf } from "./event-lane.ts";
import type { FairShare } from "./fair-scheduler.ts";
import { MarkPins } from "./mark-pins.ts";
import { PauseGate } from "./pause-gate.ts";
import type { ReadyQueue } from "./ready-queue.ts";
import { afterLong, debounceWaitMs, msUntil } from "./retry.ts";
import { pinnedMs, type Spill } from "./spill.ts";

interface QueueParts {
  readonly attempts: Attempts;
  readonly spill: Spill;
  readonly backpressure: Backpressure;
  readonly backlogs: Backlogs;
  /** Initially empty. */
  readonly ready: ReadyQueue<EventLane>;
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

/** An attempt at the head of a lane. A class, because each event's closures took 0.2 KB. */
class HeadAttempt implements AttemptListener {
  private readonly queue: FunctionQueue;
  private readonly lane: EventLane;
  private readonly event: LaneEvent;
  /** The result of `FairShare.enter`; `undefined` if the scheduler does not count the event. */
  private readonly counted: number | undefined;

  constructor(queue: FunctionQueue, lane: EventLane, event: LaneEvent, counted: number | undefined) {
    this.queue = queue;
    this.lane = lane;
    this.event = event;
    this.counted = counted;
  }

  ended(conclusion: Conclusion): void {
    this.queue.conclude(this.lane, this.event, conclusion);
    this.queue.returned(this.lane, this.counted);
  }

  failed(error: unknown): void {
    this.queue.storeFailed(this.lane, this.event, error);
    this.queue.returned(this.lane, this.counted);
  }
}

const laneKeyOf = ({ view, key }: Pick<LaneEvent, "view" | "key">): string => `${view.resource}/${key}`;

/** One function's lanes: runs them in parallel up to its limit, and keeps the queue within its limits. */
export class FunctionQueue {
  /** Counts attempts that the runner has, or is about to get. */
  readonly gate: PauseGate;
  private readonly parts: QueueParts;
  private readonly lanes = new YoungMap<string, EventLane>();
  private readonly ready: ReadyQueue<EventLane>;
  private readonly pins: MarkPins;
  private pinTimer: Timer | undefined;

  constructor(parts: QueueParts) {
    this.parts = parts;
    this.ready = parts.ready;
    this.gate = new PauseGate({
      recall: () => parts.attempts.recall(),
      retryAll: () => this.wakeAll(),
      pump: () => this.pump(),
    });
    this.pins = new MarkPins({
      ...parts,
      lanes: this.lanes,
      gate: this.gate,
      rest: (lane) => this.rest(lane),
    });
    parts.share.onTurn(() => this.pump());
  }

  /** Returns counts for the status, with times in wall-clock milliseconds. */
  counts() {
    const { spill, attempts, backpressure } = this.parts;
    const begun = attempts.counts();
    const { queued, dueSince, ...lanes } = countLanes(this.lanes.values());
    const counts = { ...lanes, queued: queued - begun.inFlight, dueSince: this.gate.isShut() ? undefined : dueSince };
    return { ...counts, spilled: spill.waiting, full: backpressure.isFull, ...begun };
  }

  /** Counts events that are in memory alone, by view. */
  inMemory(): ReadonlyMap<number, number> {
    return inMemory(this.lanes.values());
  }

  /** Returns the state of an object's lane; `undefined` if no event of it is in memory. */
  lane(view: KnownObjects, key: string): LaneReport | undefined {
    return this.lanes.get(laneKeyOf({ view, key }))?.report(this.gate.isShut());
  }

  /** Whether an object's lane has events. */
  holds(view: KnownObjects, key: string): boolean {
    return this.lanes.has(laneKeyOf({ view, key }));
  }

  /** A pending promise while sources should wait. */
  get congested(): Promise<void> | undefined {
    return this.parts.backpressure.congested;
  }

  /** Whether the disk takes what does not fit in memory. */
  get holdsQueues(): boolean {
    return this.parts.spill.holdsQueues;
  }

  /** A pending promise while the function accepts nothing at all. */
  full(isListing: boolean): Promise<void> | undefined {
    const { backpressure } = this.parts;
    if (backpressure.isShort) this.shareMemory();
    return backpressure.full(isListing);
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
  judge(view: KnownObjects, judged: FilteredEventFields, body: Buffer): Verdict | undefined {
    return this.parts.share.time.mayBegin() ? view.judgeAtOnce(judged, body) : undefined;
  }

  /**
   * Returns the condition that is false for a state of an object, if there is one, and if the function has time to evaluate it
   * now.
   */
  refuses(view: KnownObjects, change: Change): HeldBack | undefined {
    return this.parts.share.time.mayBegin() ? view.refuses(change) : undefined;
  }

  /** Accepts an event. Synchronous; never refuses. */
  accept(event: LaneEvent): void {
    const { view, key, body } = event;
    if (!event.replayed) {
      if (body && view.judgesAtOnce(key) && view.isIdle(key)) {
        event.verdict ??= this.judge(view, event, body);
        if (event.verdict?.deliver === false) {
          this.settle(event, "filtered", view.apply(event, body, event.verdict, holdOf(event)));
          return;
        }
      }
      const { type, meta, deletedBy, epoch } = event;
      view.expect({ type, key, uid: meta.uid, resourceVersion: meta.resourceVersion, deletedBy, epoch });
    }
    const { spill } = this.parts;
    if (spill.isFull && !spill.overflows) this.makeRoom();
    const lane = this.laneOf(event);
    const { head } = lane;
    // A requeue time from before an edit of mode Reconcile gives way to a change of the object, as it did in that mode.
    if (!event.replayed && head?.notBefore !== undefined && head.attempts === 0 && head.flags.reason === "edited") {
      head.notBefore = undefined;
      if (lane.backoff) this.wake(lane);
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
   * Makes the waiting events in memory hold this mark instead of theirs, for a view's objects in one namespace or ("") in all.
   */
  adopt(view: KnownObjects, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void {
    for (const event of [...this.lanes.values()].flatMap((lane) => [...lane])) {
      if (event.view !== view || event.place !== "memory" || event.replayed) continue;
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

  /** Continues with new code. Waiting retries are attempted at once. */
  resumeWith(manifest: FunctionManifest, usesOldObject: boolean): void {
    this.parts.attempts.code = { manifest, usesOldObject };
    this.gate.renew();
  }

  /** Stops all attempts. Resolves when nothing runs. */
  async stop(): Promise<void> {
    this.parts.backpressure.stop();
    this.parts.spill.close();
    this.pinTimer?.cancel();
    for (const { backoff, debounce } of this.lanes.values()) (backoff ?? debounce)?.cancel();
    await this.gate.stop();
    this.persistRedeliveryRisks();
  }

  private get manifest(): FunctionManifest {
    return this.parts.attempts.code.manifest;
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
    const { spill, backlogs } = this.parts;
    const from = backlogs.collapseShelved(lane, event);
    spill.putShelved(spilledEvent(event));
    this.spilled(event);
    lane.shelve(event, from);
  }

  private spilled(event: LaneEvent): void {
    this.parts.observer.spilled?.(event.view.functionName, event.view.trigger.name);
    event.mark?.owner.settle(event.mark.entry);
  }

  private enter(lane: EventLane, event: LaneEvent): void {
    if (this.manifest.delivery.mode === "Latest") this.coalesce(lane, event);
    lane.push(event);
    this.parts.spill.entered(event);
    if (lane.length === 1 && lane.isIdle) this.ready.add(lane);
    this.watchPins();
    this.pump();
  }

  /**
   * Collapses what waits in lanes beyond their shares, if memory is short and there is no disk, before the whole function has to
   * wait. Lanes that wait for a retry divide a share among them. Any other lane may keep a full lane's share: if many do, the
   * function is merely slow, and its sources wait for it.
   */
  private shareMemory(): void {
    const { spill, backlogs } = this.parts;
    const lanes = [...this.lanes.values()];
    const stuck = spill.fairLimit(lanes.filter(({ backoff }) => backoff).length);
    const running = spill.fairLimit(1);
    for (const lane of lanes) backlogs.collapse(lane, lane.within(lane.backoff ? stuck : running));
  }

  /** Frees memory when it is full: lanes that wait for a retry keep only their head in memory, all others at most their share. */
  private makeRoom(): void {
    const { laneLimit } = this.parts.spill;
    for (const lane of this.lanes.values()) {
      if (lane.backoff) this.rest(lane);
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
    if (lane.backoff) spill.release(head);
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
    tail.view.leave(tail.key);
    this.settle(tail, "dropped");
  }

  /** Begins as many attempts as may begin. */
  pump(): void {
    const { attempts, share } = this.parts;
    /** Lanes whose events must wait while others go on. */
    const refused: EventLane[] = [];
    const takesTurns = attempts.takesTurns && !share.isStuck;
    while (!this.gate.isShut()) {
      const lane = this.ready.first;
      if (!lane) break;
      const event = lane.head;
      if (event && attempts.refuses(event)) {
        this.ready.delete(lane);
        refused.push(lane);
        continue;
      }
      if (event && this.gate.isFull(attempts.limitFor(event))) break;
      if (!share.time.mayBegin() || (takesTurns && !share.time.isInTurn && !share.mayBegin())) break;
      this.ready.delete(lane);
      if (!event || this.isEarly(lane, event)) continue;
      this.gate.enter();
      lane.running = true;
      const counted = takesTurns ? share.enter() : undefined;
      attempts.run(event, this.gate.isShut, new HeadAttempt(this, lane, event, counted));
    }
    for (const lane of refused) this.ready.add(lane);
  }

  /** Whether the head must wait, because its handler asked for a later time, or its object still changes. Starts the wait. */
  private isEarly(lane: EventLane, event: LaneEvent): boolean {
    if (event.notBefore === undefined) return this.isDebouncing(lane, event);
    const waitMs = msUntil(event.notBefore, event.receivedWall, this.parts.clock);
    if (waitMs > 0) this.retryAfter(lane, event, waitMs);
    return waitMs > 0;
  }

  /** Whether the object still changes. Only a first attempt waits for that, and only at a change that was not on disk. */
  private isDebouncing(lane: EventLane, head: LaneEvent): boolean {
    if (lane.debounce) return true;
    const { clock, attempts } = this.parts;
    const { debounceMs } = attempts;
    if (debounceMs === undefined || head.kind === "tick") return false;
    if (head.attempts > 0 || head.interruptions > 0 || head.place !== "memory") return false;
    const { since = head.receivedAt, tail = head } = lane;
    const waitMs = debounceWaitMs(debounceMs, since, tail.receivedAt, clock.monotonic());
    if (waitMs <= 0) return false;
    // Changes that arrive meanwhile are considered when the timer fires.
    lane.debounce = clock.after(waitMs, () => {
      lane.debounce = undefined;
      this.wake(lane);
    });
    return true;
  }

  /**
   * Releases the lane after an attempt at its head.
   * @param counted the result of `FairShare.enter`
   */
  returned(lane: EventLane, counted: number | undefined): void {
    lane.running = false;
    const { share, attempts, backpressure, spill } = this.parts;
    if (!lane.backoff) {
      if (lane.length > 0) this.ready.add(lane);
      else if (lane.firstShelved === undefined) this.lanes.delete(lane.key);
      if (lane.firstShelved !== undefined) void this.takeBack(lane);
      if (spill.overflows) void this.refill();
    }
    this.gate.leave();
    share.leave(counted);
    // Events in progress may take as long as this one did, so other functions do not wait for them.
    if (!attempts.takesTurns) share.writeOff();
    backpressure.moved();
  }

  /** Acts on the result of an attempt at an event. */
  conclude(lane: EventLane, event: LaneEvent, conclusion: Conclusion): void {
    if (conclusion.type === "terminal") {
      if (conclusion.letter) this.parts.commits.putDeadLetter(conclusion.letter);
      this.finish(lane, event, conclusion.outcome);
    } else if (conclusion.type === "again") {
      lane.blocked = conclusion.blocked;
      this.retryAfter(lane, event, conclusion.afterMs);
    }
  }

  /** Retries an attempt later whose stored input could not be read. No attempt is counted. */
  storeFailed(lane: EventLane, event: LaneEvent, error: unknown): void {
    const fields = { function: this.manifest.name, object: event.key, error: String(error) };
    this.parts.log.error(fields, "attempt could not begin");
    this.retryAfter(lane, event, storeRetryMs);
  }

  private retryAfter(lane: EventLane, event: LaneEvent, delayMs: number): void {
    const { spill, clock } = this.parts;
    spill.release(event);
    if (this.gate.isStopped) return;
    lane.backoff = afterLong(clock, delayMs, () => {
      event.notBefore = undefined;
      this.wake(lane);
    });
    if (!spill.isFull) return;
    this.rest(lane);
    void this.refill();
  }

  private wakeAll(): void {
    for (const lane of this.lanes.values()) {
      lane.blocked = false;
      if (!lane.backoff) continue;
      // A time that came with a failure ends with its backoff; a requeue's time stays.
      if (lane.head && lane.head.attempts > 0) lane.head.notBefore = undefined;
      this.wake(lane);
    }
  }

  private wake(lane: EventLane): void {
    lane.backoff?.cancel();
    lane.backoff = undefined;
    this.ready.add(lane);
    this.pump();
  }

  /** Ends a terminal event. Everything that records its end goes into one commit. */
  private finish(lane: EventLane, event: LaneEvent, outcome: EventOutcome): void {
    lane.shift();
    lane.blocked = false;
    this.parts.spill.left(event);
    this.parts.backpressure.left(event.size);
    const { journalRow: row, view, body, verdict, key, id, shown, meta } = event;
    let holdsMark = false;
    if (!event.replayed) {
      view.leave(event.key);
      if (body && verdict) holdsMark = view.apply(event, body, verdict, holdOf(event));
    }
    if (row !== undefined) view.settle({ key, id, uid: meta.uid, row, shown });
    this.settle(event, outcome, holdsMark);
  }

  private settle(event: LaneEvent, outcome: EventOutcome, holdsMark = false): void {
    const heldBack = outcome === "filtered" ? event.verdict?.heldBack : undefined;
    if (heldBack) event.view.history.held(event, heldBack, this.parts.clock.now());
    if (!holdsMark) releaseMark(event);
    this.parts.observer.event?.(event.view.functionName, event.view.trigger.name, event.type, outcome);
  }

  private async refill(): Promise<void> {
    const { spill, backlogs, restore } = this.parts;
    if (this.gate.isStopped || !spill.overflows) return;
    const { events } = spill.laneLimit;
    const give = (stored: LoadedEvent) => {
      const event = restore(stored);
      const lane = this.laneOf(event);
      const fits = lane.firstShelved === undefined && lane.length < events && !lane.backoff;
      if (fits || !spill.holdsQueues) {
        this.enter(lane, event);
        return "taken";
      }
      const from = backlogs.collapseShelved(lane, event);
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
    if (this.gate.isStopped || lane.reading || lane.firstShelved === undefined || lane.length > events / 2) return;
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
      log.error({ function: this.manifest.name, error: String(error) }, "spilled events could not be read");
      clock.after(storeRetryMs, () => void again(), { unref: true });
      return false;
    }
  }

  /** Searches at intervals for events that have held the mark for too long. */
  private watchPins(): void {
    if (this.pinTimer || this.gate.isStopped) return;
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
