import type { Clock, Timer } from "../../base/clock.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { SpilledEvent } from "../../journal/batch.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import { YoungMap } from "../../v8/young-map.ts";
import type { Commits } from "../commit/commits.ts";
import type { EngineLog, EngineObserver, EventOutcome } from "../delivery/observer.ts";
import type { Verdict } from "../filter/filter.ts";
import type { HeldBack } from "../filter/reason.ts";
import type { FilteredEventFields, KnownObjects } from "../state/known-objects.ts";
import type { AttemptListener, Attempts, Conclusion } from "./attempt.ts";
import { type Backlogs, givesWay } from "./backlog.ts";
import type { Backpressure } from "./backpressure.ts";
import { holdOf, type LaneEvent, type LoadedEvent, letGo, spilledEvent } from "./event.ts";
import { countLanes, EventLane, inMemory, type LaneReport, sizeOf } from "./event-lane.ts";
import type { FairShare } from "./fair-scheduler.ts";
import { PauseGate } from "./pause-gate.ts";
import type { ReadyQueue } from "./ready-queue.ts";
import { afterLong, msUntil, quietMs } from "./retry.ts";
import { pinnedMs, type Spill } from "./spill.ts";

interface QueueParts {
  readonly attempts: Attempts;
  readonly spill: Spill;
  readonly backpressure: Backpressure;
  readonly backlogs: Backlogs;
  /** Empty. */
  readonly ready: ReadyQueue<EventLane>;
  /** Its place among all functions. */
  readonly place: FairShare;
  /** Makes an event of one that was spilled. */
  readonly restore: (event: LoadedEvent) => LaneEvent;
  readonly commits: Commits;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/** How often events that hold the mark up are looked for, in milliseconds. */
const pinCheckMs = 5_000;

/** When a read from the store that failed is tried again, in milliseconds. */
const storeRetryMs = 1_000;

/** An attempt at the event that is first in its lane. A class, because each event's closures took 0.2 KB. */
class HeadAttempt implements AttemptListener {
  private readonly queue: FunctionQueue;
  private readonly lane: EventLane;
  private readonly event: LaneEvent;
  /** What its place has given for it; undefined where it is not counted there. */
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

/** One function's lanes: runs them in parallel to its limit, and keeps the queue within its bounds. */
export class FunctionQueue {
  /** Attempts that are on their way to the runner, or there. */
  readonly gate: PauseGate;
  private readonly parts: QueueParts;
  private readonly lanes = new YoungMap<string, EventLane>();
  private readonly ready: ReadyQueue<EventLane>;
  private pinTimer: Timer | undefined;

  constructor(parts: QueueParts) {
    this.parts = parts;
    this.ready = parts.ready;
    this.gate = new PauseGate({
      recall: () => parts.attempts.recall(),
      retryAll: () => this.wakeAll(),
      pump: () => this.pump(),
    });
    parts.place.onTurn(() => this.pump());
  }

  /** For the status: milliseconds are wall time. */
  counts() {
    const { spill, attempts, backpressure } = this.parts;
    const begun = attempts.counts();
    const { queued, dueSince, ...lanes } = countLanes(this.lanes.values());
    const counts = { ...lanes, queued: queued - begun.inFlight, dueSince: this.gate.isShut() ? undefined : dueSince };
    return { ...counts, spilled: spill.waiting, full: backpressure.isFull, ...begun };
  }

  /** How many events are in memory alone, by view. */
  inMemory(): ReadonlyMap<number, number> {
    return inMemory(this.lanes.values());
  }

  /** How the lane of a view's object stands; undefined where nothing of it is in memory. */
  lane(view: KnownObjects, key: string): LaneReport | undefined {
    return this.lanes.get(laneKeyOf({ view, key }))?.report(this.gate.isShut());
  }

  /** Whether the lane of a view's object has events. */
  holds(view: KnownObjects, key: string): boolean {
    return this.lanes.has(laneKeyOf({ view, key }));
  }

  /** A promise while sources should wait. */
  get congested(): Promise<void> | undefined {
    return this.parts.backpressure.congested;
  }

  /** Whether the disk takes what memory cannot. */
  get holdsQueues(): boolean {
    return this.parts.spill.holdsQueues;
  }

  /** A promise while nothing at all is to be taken. */
  get full(): Promise<void> | undefined {
    const { backpressure } = this.parts;
    if (backpressure.isShort) this.shareMemory();
    return backpressure.full;
  }

  /** Whether something waits that a process before this one may have handled, and nothing on disk says so. */
  get holdsUnnoted(): boolean {
    for (const lane of this.lanes.values()) if (lane.unnoted.length > 0) return true;
    return false;
  }

  /** Puts on disk what would else be forgotten at the end: the next process would doubt all that comes. */
  private noteDoubts(): void {
    const { spill } = this.parts;
    for (const lane of this.lanes.values()) {
      spill.pinAll(lane.unnoted);
    }
  }

  /** The verdict on what comes. Undefined where the function has had its share of the parent's time, or it takes long: it is judged in its turn. */
  judge(view: KnownObjects, judged: FilteredEventFields, body: Buffer): Verdict | undefined {
    return this.parts.place.time.mayBegin() ? view.judgeAtOnce(judged, body) : undefined;
  }

  /** The condition that does not hold for a state of an object, where one is false and there is time to see that now. */
  refuses(view: KnownObjects, change: Change): HeldBack | undefined {
    return this.parts.place.time.mayBegin() ? view.refuses(change) : undefined;
  }

  /** Takes an event; synchronous, never refuses. */
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
    // A time that a reconciler asked for, before its mode was edited, gives way to a change of the object, as it did in that mode.
    if (!event.replayed && head?.notBefore !== undefined && head.attempts === 0 && head.flags.reason === "edited") {
      head.notBefore = undefined;
      if (lane.backoff) this.wake(lane);
    }
    if (spill.isFull) this.overflow(lane, event);
    else if (lane.firstShelved !== undefined) this.shelve(lane, event);
    else this.enter(lane, event);
  }

  /** Puts on disk what holds the mark up and must not any longer. Its body stays in memory: its turn may come at once. */
  keepBacklog(): void {
    for (const lane of this.lanes.values()) {
      this.parts.spill.pinAll(lane.pinned(Number.NEGATIVE_INFINITY));
    }
  }

  /** What waits in memory of a view's objects in one namespace, or ("") in all, holds this mark from now on. */
  adopt(view: KnownObjects, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void {
    for (const event of [...this.lanes.values()].flatMap((lane) => [...lane])) {
      if (event.view !== view || event.place !== "memory" || event.replayed) continue;
      if (namespace !== "" && event.meta.namespace !== namespace) continue;
      mark.entry.outstanding++;
      event.mark?.owner.settle(event.mark.entry);
      event.mark = mark;
    }
  }

  /** Whether the disk takes another event of so many bytes, which did not come from a source. */
  takesReplay(bytes: number): boolean {
    return this.parts.spill.hasRoomFor(bytes);
  }

  /** A spilled event that is written by now, or is about to be: takes its turn after what was spilled before it. */
  acceptSpilled(event: SpilledEvent): void {
    this.parts.spill.put(event);
    void this.refill();
  }

  /** Starts what was spilled before. */
  start(): void {
    void this.refill();
  }

  /** Goes on with new code: what waits for a retry is tried at once. */
  resumeWith(manifest: FunctionManifest, usesOldObject: boolean): void {
    this.parts.attempts.code = { manifest, usesOldObject };
    this.gate.renew();
  }

  /** Nothing begins any more. Resolves when nothing runs. */
  async stop(): Promise<void> {
    this.parts.backpressure.stop();
    this.parts.spill.close();
    this.pinTimer?.cancel();
    for (const { backoff, quiet } of this.lanes.values()) (backoff ?? quiet)?.cancel();
    await this.gate.stop();
    this.noteDoubts();
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

  /** The event goes to disk, behind all that are in lanes. */
  private overflow(lane: EventLane, event: LaneEvent): void {
    // What waits before it in its lane must be on disk too: after a crash it could not be put back in front.
    for (const before of lane) this.parts.spill.write(before);
    this.parts.spill.put(spilledEvent(event));
    this.spilled(event);
    if (lane.length === 0 && lane.firstShelved === undefined) this.lanes.delete(lane.key);
    // Where nothing runs, no end of it would have this one read back.
    if (this.lanes.size === 0) void this.refill();
  }

  /** The event goes to disk, behind others of its lane that are there. */
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
   * Memory is short, and there is no disk: what waits of a lane beyond its share collapses, before all of the function has to wait.
   * Those that wait for a retry share what lanes may keep. One that gets on may keep as much as any lane: where many do, their function
   * is merely slow, and its sources wait for it.
   */
  private shareMemory(): void {
    const { spill, backlogs } = this.parts;
    const lanes = [...this.lanes.values()];
    const stuck = spill.fairLimit(lanes.filter(({ backoff }) => backoff).length);
    const running = spill.fairLimit(1);
    for (const lane of lanes) backlogs.collapse(lane, lane.within(lane.backoff ? stuck : running));
  }

  /** Memory is full: lanes that wait for a retry keep no more than their head in it, and no other more than its share. */
  private makeRoom(): void {
    const { laneLimit } = this.parts.spill;
    for (const lane of this.lanes.values()) {
      if (lane.backoff) this.rest(lane);
      else this.trim(lane, lane.within(laneLimit));
    }
  }

  /** The lane will not get on for long: it keeps no more than its head in memory, and of that no body. */
  private rest(lane: EventLane): void {
    const { spill } = this.parts;
    this.trim(lane, 1);
    const { head } = lane;
    if (!head) return;
    spill.pin(head);
    if (lane.backoff) spill.release(head);
  }

  /** Keeps the lane's first events in memory, the others on disk alone. */
  private trim(lane: EventLane, kept: number): void {
    const { spill } = this.parts;
    // While it reads what comes next from disk, nothing is put in front of that.
    if (lane.length <= kept || lane.reading || !spill.holdsQueues) return;
    if (!spill.pinAll(lane)) return;
    for (const event of lane.shelveFrom(kept)) spill.shelve(event);
  }

  /** A Modified that waits, and was never begun, gives way to a newer one of the same object. */
  private coalesce(lane: EventLane, next: LaneEvent): void {
    const { tail } = lane;
    if (!tail || !givesWay(tail, next) || (lane.running && lane.head === tail)) return;
    lane.pop();
    this.parts.spill.left(tail);
    tail.view.leave(tail.key);
    this.settle(tail, "dropped");
  }

  /** Begins what may begin. */
  pump(): void {
    const { attempts, place } = this.parts;
    /** Lanes whose events are to wait beside others. */
    const refused: EventLane[] = [];
    const takesTurns = attempts.takesTurns && !place.hangs;
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
      if (!place.time.mayBegin() || (takesTurns && !place.time.isInTurn && !place.mayBegin())) break;
      this.ready.delete(lane);
      if (!event || this.isEarly(lane, event)) continue;
      this.gate.enter();
      lane.running = true;
      const counted = takesTurns ? place.enter() : undefined;
      attempts.run(event, this.gate.isShut, new HeadAttempt(this, lane, event, counted));
    }
    for (const lane of refused) this.ready.add(lane);
  }

  /** Whether its handler has asked for it at a later time, or its object is not quiet. Then its lane waits for that. */
  private isEarly(lane: EventLane, event: LaneEvent): boolean {
    if (event.notBefore === undefined) return this.isUnquiet(lane, event);
    const waitMs = msUntil(event.notBefore, event.receivedWall, this.parts.clock);
    if (waitMs > 0) this.retryAfter(lane, event, waitMs);
    return waitMs > 0;
  }

  /** Whether the object still changes. Only a first attempt waits for that, at a change that did not wait on disk. */
  private isUnquiet(lane: EventLane, head: LaneEvent): boolean {
    if (lane.quiet) return true;
    const { clock, attempts } = this.parts;
    const { debounceMs } = attempts;
    if (debounceMs === undefined || head.kind === "tick") return false;
    if (head.attempts > 0 || head.interruptions > 0 || head.place !== "memory") return false;
    const { since = head.receivedAt, tail = head } = lane;
    const waitMs = quietMs(debounceMs, since, tail.receivedAt, clock.monotonic());
    if (waitMs <= 0) return false;
    // Changes that come meanwhile are looked at when it is over.
    lane.quiet = clock.after(waitMs, () => {
      lane.quiet = undefined;
      this.wake(lane);
    });
    return true;
  }

  /** An attempt at the lane's head has left it. @param counted what its place gave for it */
  returned(lane: EventLane, counted: number | undefined): void {
    lane.running = false;
    const { place, attempts, backpressure, spill } = this.parts;
    if (!lane.backoff) {
      if (lane.length > 0) this.ready.add(lane);
      else if (lane.firstShelved === undefined) this.lanes.delete(lane.key);
      if (lane.firstShelved !== undefined) void this.takeBack(lane);
      if (spill.overflows) void this.refill();
    }
    this.gate.leave();
    place.leave(counted);
    // Those that are under way may take as long as this one did: nobody waits for them.
    if (!attempts.takesTurns) place.writeOff();
    backpressure.moved();
  }

  /** Does what follows for the event from how an attempt at it ended. */
  conclude(lane: EventLane, event: LaneEvent, conclusion: Conclusion): void {
    if (conclusion.type === "terminal") {
      if (conclusion.letter) this.parts.commits.putDeadLetter(conclusion.letter);
      this.finish(lane, event, conclusion.outcome);
    } else if (conclusion.type === "again") {
      lane.blocked = conclusion.blocked;
      this.retryAfter(lane, event, conclusion.afterMs);
    }
  }

  /** The disk did not give what the attempt needs: it begins again later, and none is counted. */
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
      // A time that came with a failure gives way as its backoff does; one for another look at the object stays.
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

  /** The event is terminal, and everything that says so goes into one commit. */
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
    if (!holdsMark) letGo(event);
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

  /** Reads what comes next of a lane's events that are on disk alone, once few are left in memory. */
  private async takeBack(lane: EventLane): Promise<void> {
    const { spill, restore } = this.parts;
    const { events } = spill.laneLimit;
    if (this.gate.isStopped || lane.reading || lane.firstShelved === undefined || lane.length > events / 2) return;
    lane.reading = true;
    const hasRead = await this.reading(
      async () => {
        // Its head needs no room: without it the lane would stand still.
        const back = await spill.takeBack(lane.nextShelved(spill.isFull ? 1 : Math.ceil(events / 2)));
        lane.takeBack(back.length, sizeOf(back));
        for (const event of back) this.enter(lane, restore(event));
      },
      () => this.takeBack(lane),
    );
    lane.reading = false;
    // What it read may be over already, and asked for more meanwhile.
    if (hasRead) void this.takeBack(lane);
  }

  /** Gives whether it could be read; otherwise it is tried again. */
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

  /** Looks now and then for events that have held the mark up for too long. */
  private watchPins(): void {
    if (this.pinTimer || this.gate.isStopped) return;
    this.pinTimer = this.parts.clock.after(
      pinCheckMs,
      () => {
        this.pinTimer = undefined;
        const before = this.parts.clock.monotonic() - pinnedMs;
        for (const lane of this.lanes.values()) this.pinUpTo(lane, before);
        void this.refill();
        if (this.lanes.size > 0) this.watchPins();
      },
      { unref: true },
    );
  }

  private pinUpTo(lane: EventLane, limit: number): void {
    const { spill, backlogs } = this.parts;
    if (!spill.pinAll(lane.pinned(limit))) {
      backlogs.collapse(lane, lane.within(spill.recordLimit));
      spill.pinAll(lane.pinned(limit));
    }
    const { head, running, backoff } = lane;
    if ((running || backoff) && head && head.receivedAt <= limit) this.rest(lane);
  }
}
