import type { SpilledEvent } from "../checkpoint/batch.ts";
import type { Clock, Random, Timer } from "../clock.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { crashLoopError, deliveryOf } from "./attempt.ts";
import type { Backpressure } from "./backpressure.ts";
import type { Commits } from "./commits.ts";
import type { HandlerError, Outcome, Runner } from "./delivery.ts";
import { type LaneEvent, spilledEvent, storedEvent } from "./event.ts";
import { Lane } from "./lane.ts";
import type { EventOutcome, Log, Observer } from "./observer.ts";
import { ReadyLanes } from "./ready-lanes.ts";
import { interruptedDelay, isCrashLoop, retryDelay } from "./retry.ts";
import { pinnedMs, type Spill } from "./spill.ts";
import type { View } from "./view.ts";

export interface QueueParts {
  readonly manifest: FunctionManifest;
  readonly usesOldObject: boolean;
  readonly spill: Spill;
  readonly backpressure: Backpressure;
  /** Makes an event of one that was spilled. */
  readonly restore: (event: SpilledEvent) => LaneEvent;
  readonly commits: Commits;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: Observer;
  readonly log: Log;
}

/** How often events that hold the mark up are looked for, in milliseconds. */
const pinCheckMs = 5_000;

/** When a read from the store that failed is tried again, in milliseconds. */
const storeRetryMs = 1_000;

/** An attempt that ended by itself. */
type Finished = Exclude<Outcome, { readonly type: "interrupted" }>;

const laneKeyOf = ({ view, key }: LaneEvent): string => `${view.resource}/${key}`;

/** One function's lanes: runs them in parallel to its limit, retries, gives up, and keeps the queue within its bounds. */
export class FunctionQueue {
  private manifest: FunctionManifest;
  private usesOldObject: boolean;
  private readonly parts: QueueParts;
  private readonly lanes = new Map<string, Lane>();
  private readonly ready = new ReadyLanes();
  private inFlight = 0;
  private paused = false;
  private held = false;
  private stopped = false;
  private idle: (() => void)[] = [];
  private pinTimer: Timer | undefined;
  private lastEventAt: number | undefined;
  private failures = 0;
  /** Dead letters made since the start. */
  private letters = 0;

  constructor(parts: QueueParts) {
    this.parts = parts;
    this.manifest = parts.manifest;
    this.usesOldObject = parts.usesOldObject;
  }

  /** For the status: milliseconds are wall time. */
  counts() {
    let queued = 0;
    let blocked = 0;
    let oldestAt: number | undefined;
    for (const lane of this.lanes.values()) {
      queued += lane.length;
      if (lane.blocked) blocked++;
      const receivedAt = lane.head?.receivedWall;
      if (receivedAt !== undefined && (oldestAt === undefined || receivedAt < oldestAt)) oldestAt = receivedAt;
    }
    const { inFlight, lastEventAt, failures, letters } = this;
    const spilled = this.parts.spill.waiting;
    const full = this.parts.backpressure.isFull;
    return { queued: queued - inFlight, inFlight, spilled, blocked, full, oldestAt, lastEventAt, failures, letters };
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
    return this.parts.backpressure.full;
  }

  /**
   * Whether something waits that a process before this one may have handled, and nothing on disk says so; on disk itself
   * that is what is older than `firstSequence`.
   */
  holdsDoubted(firstSequence: number): boolean {
    if (this.parts.spill.hasBefore(firstSequence)) return true;
    for (const lane of this.lanes.values()) for (const { doubted } of lane) if (doubted) return true;
    return false;
  }

  /** Takes an event; synchronous, never refuses. */
  accept(event: LaneEvent): void {
    const { view, key, body } = event;
    if (!event.replayed) {
      if (body && view.judgesAtOnce(key) && view.isIdle(key)) {
        event.verdict = view.judgeWith(event, body);
        if (!event.verdict.deliver) {
          view.apply(event, body, event.verdict);
          this.settle(event, "filtered");
          return;
        }
      }
      const { type, meta, deletedBy, epoch } = event;
      view.expect({ type, key, uid: meta.uid, resourceVersion: meta.resourceVersion, deletedBy, epoch });
    }
    if (this.parts.spill.isFull) this.overflow(event);
    else this.enqueue(event);
  }

  /** Puts on disk what holds the mark up and must not any longer. Its body stays in memory: its turn may come at once. */
  keepBacklog(): void {
    for (const lane of this.lanes.values()) {
      for (const event of pinnedOf(lane, Number.NEGATIVE_INFINITY)) this.parts.spill.pin(event);
    }
  }

  /** What waits in memory of a view's objects in one namespace, or ("") in all, holds this mark from now on. */
  adopt(view: View, namespace: string, mark: NonNullable<LaneEvent["mark"]>): void {
    for (const event of [...this.lanes.values()].flatMap((lane) => [...lane])) {
      if (event.view !== view || event.stored || event.replayed) continue;
      if (namespace !== "" && event.meta.namespace !== namespace) continue;
      mark.entry.outstanding++;
      event.mark?.owner.settle(event.mark.entry);
      event.mark = mark;
    }
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

  /** No attempt begins until `resume`. Resolves when none runs. */
  pause(): Promise<void> {
    this.paused = true;
    return new Promise((resolve) => {
      this.idle.push(resolve);
      this.tellIdle();
    });
  }

  /** Goes on as it was. */
  resume(): void {
    if (this.stopped) return;
    this.paused = false;
    this.pump();
  }

  /** Until `release` no attempt begins: it would fail for a reason that is no event's. Those that run go on. */
  hold(): void {
    this.held = true;
  }

  /** What held it is over: what waits for a retry is tried at once. */
  release(): void {
    if (!this.held || this.stopped) return;
    this.held = false;
    this.wakeAll();
    this.pump();
  }

  /** Goes on with new code: what waits for a retry is tried at once. */
  resumeWith(manifest: FunctionManifest, usesOldObject: boolean): void {
    if (this.stopped) return;
    this.manifest = manifest;
    this.usesOldObject = usesOldObject;
    this.wakeAll();
    this.resume();
  }

  /** Nothing begins any more. Resolves when nothing runs. */
  stop(): Promise<void> {
    this.stopped = true;
    this.parts.backpressure.stop();
    this.parts.spill.close();
    this.pinTimer?.cancel();
    for (const lane of this.lanes.values()) lane.backoff?.cancel();
    return this.pause();
  }

  private overflow(event: LaneEvent): void {
    // What waits before it in its lane must be on disk too: after a crash it could not be put back in front.
    for (const before of this.lanes.get(laneKeyOf(event)) ?? []) this.parts.spill.write(before);
    this.parts.spill.put(spilledEvent(event));
    this.parts.observer.spilled?.(event.view.functionName, event.view.trigger.name);
    event.mark?.owner.settle(event.mark.entry);
  }

  private enqueue(event: LaneEvent): void {
    const laneKey = laneKeyOf(event);
    let lane = this.lanes.get(laneKey);
    if (!lane) {
      lane = new Lane(laneKey);
      this.lanes.set(laneKey, lane);
    }
    if (this.manifest.delivery.mode === "Latest") this.coalesce(lane, event);
    lane.push(event);
    this.parts.spill.entered(event);
    if (lane.length === 1 && lane.isIdle) this.ready.add(lane);
    this.watchPins();
    this.pump();
  }

  /** A Modified that waits, and was never begun, gives way to a newer one of the same object. */
  private coalesce(lane: Lane, next: LaneEvent): void {
    const { tail } = lane;
    if (!tail || next.type !== "Modified" || tail.type !== "Modified") return;
    // A dead letter that comes back is of an older state than what waits, and was counted once.
    if (tail.replayed || next.replayed) return;
    if (tail.view !== next.view || tail.meta.uid !== next.meta.uid) return;
    if (tail.attempts > 0 || tail.interruptions > 0) return;
    if (lane.running && lane.head === tail) return;
    lane.pop();
    this.parts.spill.left(tail);
    tail.view.leave(tail.key);
    this.settle(tail, "dropped");
  }

  private pump(): void {
    while (!this.paused && !this.held && this.inFlight < this.manifest.delivery.concurrency) {
      const lane = this.ready.take();
      const event = lane?.head;
      if (!lane) return;
      if (!event) continue;
      this.inFlight++;
      lane.running = true;
      const failed = (error: unknown) => this.storeFailed(lane, event, error);
      void this.attempt(lane, event)
        .catch(failed)
        .then(() => {
          this.inFlight--;
          lane.running = false;
          if (!lane.backoff) this.proceed(lane);
          this.tellIdle();
          this.pump();
        });
    }
  }

  private proceed(lane: Lane): void {
    if (lane.length > 0) this.ready.add(lane);
    else this.lanes.delete(lane.key);
    void this.refill();
  }

  private async attempt(lane: Lane, event: LaneEvent): Promise<void> {
    const { commits, runner, observer, clock, spill } = this.parts;
    const { view } = event;
    const kept = event.body ?? (await (event.lastKnown ? view.body(event.key) : spill.body(event)));
    event.verdict ??= await view.judge(event, kept);
    const body = kept ?? view.nameAlone(event);
    event.body = body;
    if (!event.verdict.deliver && !event.replayed) {
      this.finish(lane, event, "filtered");
      return;
    }
    const { retry, onFailure, timeoutMs } = this.manifest.delivery;
    if (onFailure !== "Block" && isCrashLoop(event.attempts, retry)) {
      this.giveUp(lane, event, crashLoopError(event.attempts));
      return;
    }
    const wantsOld = this.usesOldObject && event.type !== "Added";
    const oldBody = event.oldBody ?? (wantsOld ? await view.body(event.key) : undefined);
    const row = await commits.begin({
      view: view.id,
      key: event.key,
      id: event.id,
      resourceVersion: event.deletedBy,
      type: event.type,
      attempt: event.attempts + 1,
    });
    if (this.paused) {
      commits.ended();
      commits.settle(row);
      return;
    }
    if (event.journalRow !== undefined) commits.settle(event.journalRow);
    event.journalRow = row;
    event.doubted = false;
    event.attempts++;
    observer.attempt?.(view.functionName, view.trigger.name, clock.monotonic() - event.receivedAt);
    const delivery = deliveryOf(event, body, oldBody, timeoutMs);
    if (delivery.redelivered) observer.flagged?.(view.functionName, view.trigger.name);
    const outcome = await runner.run(delivery);
    commits.ended();
    this.lastEventAt = clock.now();
    this.conclude(lane, event, outcome, oldBody);
  }

  private conclude(lane: Lane, event: LaneEvent, outcome: Outcome, oldBody: Buffer | undefined): void {
    if (outcome.type === "interrupted") {
      event.attempts--;
      event.interruptions++;
      event.redelivered = true;
      this.retryAfter(lane, event, interruptedDelay(event.interruptions));
    } else this.concludeRun(lane, event, outcome, oldBody);
  }

  private concludeRun(lane: Lane, event: LaneEvent, outcome: Finished, oldBody: Buffer | undefined): void {
    const { random, observer } = this.parts;
    const { view } = event;
    event.interruptions = 0;
    observer.handled?.(view.functionName, view.trigger.name, outcome.durationMs);
    if (outcome.type === "ok") {
      this.finish(lane, event, "ok");
      return;
    }
    this.failures++;
    const { retry, onFailure } = this.manifest.delivery;
    const spent = outcome.type === "permanent" || event.attempts >= retry.maxAttempts;
    if (spent && onFailure !== "Block") {
      this.giveUp(lane, event, outcome.error, oldBody);
      return;
    }
    lane.blocked = spent;
    const asked = outcome.type === "failed" ? outcome.retryAfterMs : undefined;
    observer.event?.(view.functionName, view.trigger.name, event.type, "retry");
    this.retryAfter(lane, event, spent ? retry.maxDelayMs : retryDelay(retry, event.attempts, asked, random));
  }

  private giveUp(lane: Lane, event: LaneEvent, error: HandlerError, oldBody?: Buffer): void {
    const { commits, clock, log } = this.parts;
    const { view, attempts } = event;
    if (this.manifest.delivery.onFailure === "Drop") {
      this.finish(lane, event, "dropped");
      return;
    }
    const { apiVersion, kind } = view.trigger;
    const stored = storedEvent(event, oldBody);
    this.letters++;
    commits.putDeadLetter({ ...stored, apiVersion, kind, attempts, error: { ...error }, failedAt: clock.now() });
    log.warn(
      { function: view.functionName, trigger: view.trigger.name, object: event.key, attempt: attempts },
      "event given up",
    );
    this.finish(lane, event, "dead_letter");
  }

  /** The disk did not give what the attempt needs: it begins again later, and none is counted. */
  private storeFailed(lane: Lane, event: LaneEvent, error: unknown): void {
    const { log } = this.parts;
    log.error({ function: this.manifest.name, object: event.key, error: String(error) }, "attempt could not begin");
    this.retryAfter(lane, event, storeRetryMs);
  }

  private retryAfter(lane: Lane, event: LaneEvent, delayMs: number): void {
    this.parts.spill.release(event);
    if (this.stopped) return;
    lane.backoff = this.parts.clock.after(delayMs, () => {
      this.wake(lane);
      this.pump();
    });
  }

  private wakeAll(): void {
    for (const lane of this.lanes.values()) {
      lane.blocked = false;
      if (lane.backoff) this.wake(lane);
    }
  }

  private wake(lane: Lane): void {
    lane.backoff?.cancel();
    lane.backoff = undefined;
    this.ready.add(lane);
  }

  /** The event is terminal, and everything that says so goes into one commit. */
  private finish(lane: Lane, event: LaneEvent, outcome: EventOutcome): void {
    lane.shift();
    lane.blocked = false;
    this.parts.spill.left(event);
    this.parts.backpressure.left(event.size);
    if (!event.replayed) {
      event.view.leave(event.key);
      if (event.body && event.verdict) event.view.apply(event, event.body, event.verdict);
    }
    if (event.journalRow !== undefined) this.parts.commits.settle(event.journalRow);
    this.settle(event, outcome);
  }

  private settle(event: LaneEvent, outcome: EventOutcome): void {
    event.mark?.owner.settle(event.mark.entry);
    this.parts.observer.event?.(event.view.functionName, event.view.trigger.name, event.type, outcome);
  }

  private async refill(): Promise<void> {
    if (this.stopped || this.parts.spill.waiting === 0) return;
    const { spill, restore, log, clock } = this.parts;
    try {
      await spill.load((event) => this.enqueue(restore(event)));
    } catch (error) {
      log.error({ function: this.manifest.name, error: String(error) }, "spilled events could not be read");
      clock.after(storeRetryMs, () => void this.refill(), { unref: true });
    }
  }

  /** Looks now and then for events that have held the mark up for too long. */
  private watchPins(): void {
    if (this.pinTimer || this.stopped) return;
    const { clock } = this.parts;
    this.pinTimer = clock.after(
      pinCheckMs,
      () => {
        this.pinTimer = undefined;
        const before = clock.monotonic() - pinnedMs;
        for (const lane of this.lanes.values()) this.pinUpTo(lane, before);
        if (this.lanes.size > 0) this.watchPins();
      },
      { unref: true },
    );
  }

  private pinUpTo(lane: Lane, limit: number): void {
    for (const event of pinnedOf(lane, limit)) {
      this.parts.spill.pin(event);
      if (!(lane.running && lane.head === event)) this.parts.spill.release(event);
    }
  }

  private tellIdle(): void {
    if (this.inFlight > 0) return;
    for (const resolve of this.idle.splice(0)) resolve();
  }
}

/** A lane's events up to the last one that was received by `limit`, or is old anyway, so that their order on disk has no holes. */
function pinnedOf(lane: Lane, limit: number): readonly LaneEvent[] {
  const events = [...lane];
  const last = events.findLastIndex(({ receivedAt, mark }) => receivedAt <= limit || mark?.owner.isBacklog(mark.entry));
  return events.slice(0, last + 1);
}
