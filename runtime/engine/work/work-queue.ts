import type { Clock } from "../../base/clock.ts";
import { YoungMap } from "../../v8/young-map.ts";
import type { AttemptListener, Attempts, Conclusion, LoadedCode, Waiting } from "./attempt.ts";
import { DueLanes } from "./due-lanes.ts";
import { type Lane, type LaneReport, ReadyQueue, type Waits } from "./lane.ts";

/** A lane whose head is the subject of an attempt. */
type LaneOf<T extends Waiting> = Lane & { readonly head: T | undefined };

/** The result of a lane's turn. `taken`: its head has begun, or waits. `passed`: other lanes go first. `full`: no lane may begin. */
export type Turn = "taken" | "passed" | "full";

/** The attempt at the head of a lane. A class, because each event's closures took 0.2 KB. */
class LaneAttempt<T extends Waiting, L extends LaneOf<T>> implements AttemptListener {
  readonly lane: L;
  readonly item: T;
  /** The result of `FairShare.enter`; `undefined` if the scheduler does not count the attempt. */
  readonly counted: number | undefined;
  readonly soon: AttemptListener["soon"];
  private readonly queue: WorkQueue<T, L>;

  constructor(queue: WorkQueue<T, L>, lane: L, item: T, counted: number | undefined) {
    this.queue = queue;
    this.lane = lane;
    this.item = item;
    this.counted = counted;
    this.soon = queue.soon;
  }

  ended(conclusion: Conclusion): void {
    this.queue.ended(this, conclusion);
  }
}

/**
 * One function's lanes, of events or of keys: begins the attempts at their heads in parallel, up to a limit, delays them, and
 * lets no attempt begin while the function is paused or held.
 */
export abstract class WorkQueue<T extends Waiting, L extends LaneOf<T>> {
  /** Runs the work after an attempt's end once there is room for it. Default: at once. */
  readonly soon: AttemptListener["soon"];
  protected readonly lanes = new YoungMap<string, L>();
  protected readonly ready = new ReadyQueue<L>();
  /** The number of attempts that the runner has, or is about to get. */
  protected inProgress = 0;
  private readonly waiting: DueLanes<L>;
  private readonly clock: Clock;
  private readonly attempts: Pick<Attempts, "code" | "counts" | "recall" | "run">;
  private paused = false;
  private held = false;
  /** Whether it is shut for good. Written here only. */
  protected isStopped = false;
  private idle: (() => void)[] = [];

  constructor(attempts: WorkQueue<T, L>["attempts"], clock: Clock, soon?: AttemptListener["soon"]) {
    this.attempts = attempts;
    this.clock = clock;
    this.soon = soon;
    this.waiting = new DueLanes(clock, (lanes) => {
      for (const lane of lanes) this.endWait(lane);
      this.pump();
    });
  }

  /** Begins an attempt at the lane's head by `run`, or decides otherwise. */
  protected abstract take(lane: L): Turn;
  /** Acts on the result of an attempt: the lane has ended, waits, or is ready again. */
  protected abstract conclude(lane: L, item: T, conclusion: Conclusion): void;
  /**
   * Called after other attempts may have begun in its place.
   * @param counted the argument of `run`
   */
  protected abstract returned(counted: number | undefined): void;

  /** Begins as many attempts as may begin. */
  pump(): void {
    const passed: L[] = [];
    while (!this.isShut()) {
      const lane = this.ready.first;
      const turn = lane ? this.take(lane) : "full";
      if (!lane || turn === "full") break;
      this.ready.delete(lane);
      if (turn === "passed") passed.push(lane);
    }
    for (const lane of passed) this.ready.add(lane);
  }

  protected run(lane: L, item: T, counted?: number): "taken" {
    this.inProgress++;
    lane.running = true;
    this.attempts.run(item, this.isShut, new LaneAttempt(this, lane, item, counted));
    return "taken";
  }

  /** Called with the result of an attempt. */
  ended({ lane, item, counted }: LaneAttempt<T, L>, conclusion: Conclusion): void {
    lane.running = false;
    this.conclude(lane, item, conclusion);
    this.inProgress--;
    if (this.idle.length > 0) this.resolveIdle();
    this.pump();
    this.returned(counted);
  }

  /** Delays the head of a lane that is not ready. Replaces its current wait. */
  protected wait(lane: L, why: Waits, delayMs: number): void {
    if (this.isStopped) return;
    this.waiting.remove(lane);
    lane.waits = why;
    this.waiting.add(lane, delayMs);
  }

  /** Makes a lane ready before its time. */
  protected endWait(lane: L): void {
    this.waiting.remove(lane);
    lane.endWait(this.clock);
    lane.waits = undefined;
    this.ready.add(lane);
  }

  /** Makes waiting retries ready, and what waits for its object to stop changing. A time that a handler asked for stays. */
  private retryAll(): void {
    for (const lane of this.lanes.values()) {
      lane.blocked = false;
      if (lane.waits && lane.waits !== "requeue") this.endWait(lane);
    }
  }

  /** Counts lanes for the status, with times in wall-clock milliseconds. */
  protected count(lanes: Iterable<L>) {
    let [queued, blocked] = [0, 0];
    let oldestAt = Number.POSITIVE_INFINITY;
    let dueSince = Number.POSITIVE_INFINITY;
    for (const lane of lanes) {
      const { arrivedAt = Number.POSITIVE_INFINITY } = lane;
      queued += lane.length;
      if (lane.blocked) blocked++;
      oldestAt = Math.min(oldestAt, arrivedAt);
      if (lane.isDue) dueSince = Math.min(dueSince, arrivedAt);
    }
    const begun = this.attempts.counts();
    return {
      ...begun,
      /** Without those that a handler has. */
      queued: queued - begun.inFlight,
      /** The number of lanes whose head is out of attempts and holds them. */
      blocked,
      /** The arrival of the oldest head. */
      oldestAt: finite(oldestAt),
      /** The arrival of the oldest head that could run and has not begun. */
      dueSince: this.isShut() ? undefined : finite(dueSince),
    };
  }

  /** Returns the state of a lane; `undefined` if nothing of it is in memory. */
  report(key: string): LaneReport | undefined {
    return this.lanes.get(key)?.report(this.isShut());
  }

  /** Whether no attempt may begin. */
  readonly isShut = (): boolean => this.paused || this.held;

  /** Lets no attempt begin until `resume`. Resolves when no attempt is in progress. */
  pause(): Promise<void> {
    this.paused = true;
    this.attempts.recall();
    return new Promise((resolve) => {
      this.idle.push(resolve);
      this.resolveIdle();
    });
  }

  /** Ends a pause. */
  resume(): void {
    if (this.isStopped) return;
    this.paused = false;
    this.pump();
  }

  /** Ends a pause with new code. Waiting retries are attempted at once. */
  resumeWith(code: LoadedCode): void {
    this.attempts.code = code;
    if (this.isStopped) return;
    this.retryAll();
    this.resume();
  }

  /**
   * Lets no attempt begin until `release`, because it would fail for a reason that affects all events. Attempts in progress go
   * on.
   */
  hold(): void {
    this.held = true;
    this.attempts.recall();
  }

  /** Ends a hold. Waiting retries are attempted at once. */
  release(): void {
    if (!this.held || this.isStopped) return;
    this.held = false;
    this.retryAll();
    this.pump();
  }

  /** Lets no attempt begin any more. Resolves when no attempt is in progress. */
  stop(): Promise<void> {
    this.isStopped = true;
    this.waiting.stop();
    return this.pause();
  }

  private resolveIdle(): void {
    if (this.inProgress > 0) return;
    for (const resolve of this.idle.splice(0)) resolve();
  }
}

const finite = (at: number): number | undefined => (Number.isFinite(at) ? at : undefined);
