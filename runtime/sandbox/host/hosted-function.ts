import { pause } from "../../base/clock.ts";
import { describeFault, WatchfireError } from "../../base/errors.ts";
import type { Delivery, DeliveryListener, Outcome } from "../../engine/delivery/delivery.ts";
import { type AttemptGiver, SandboxAttempt } from "./attempt.ts";
import type { CanaryRoute } from "./canary-route.ts";
import type { CircuitBreaker, Involvement } from "./circuit-breaker.ts";
import type { ExecutorHandle } from "./executor.ts";
import type { DeathReason } from "./executor-process.ts";
import { type FunctionVersion, Placement, type PlacementListener, type Services } from "./placement.ts";
import { commonGroup, type ExecutorPool } from "./pool.ts";

/** Maximum number of deliveries in one frame. */
const batchLimit = 64;
/** Number of executors in a row that end before any code ran in them, after which loading fails: no executor can start. */
const stillbirths = 5;
/**
 * Number of executors in a row that die of other functions' code during a load, after which each further try waits `restMs`
 * milliseconds.
 */
const restlessTries = 5;
const restMs = 1000;

/**
 * Functions with deliveries of this turn of the event loop. All are flushed together, so that their frames to one executor share
 * a write.
 */
const due = new Set<{ flush(): void }>();

function flushAll(): void {
  const all = [...due];
  due.clear();
  for (const each of all) each.flush();
}

/** Listeners that have not been notified of their attempts' end. */
let endings: { readonly listener: DeliveryListener; readonly outcome: Outcome }[] = [];

function notifySoon(listener: DeliveryListener, outcome: Outcome): void {
  if (endings.length === 0) queueMicrotask(notifyAll);
  endings.push({ listener, outcome });
}

function notifyAll(): void {
  const all = endings;
  endings = [];
  for (const { listener, outcome } of all) listener.ended(outcome);
}

/** A function's state in the sandbox. */
export interface HostedState {
  readonly state: "loading" | "ready" | "quarantined" | "parked" | "failed";
  /** Describes what is wrong; empty if nothing is. */
  readonly detail: string;
  /** Number of executors that it ended since its code was loaded. */
  readonly kills: number;
}

/** Callbacks of a hosted function. */
export interface HostedListener {
  /** It ended an executor. `isProven`: it had the executor to itself. */
  killed(killer: HostedFunction, isProven: boolean): void;
}

/** A loaded function: its current placement, and the attempts that wait while it moves. */
export class HostedFunction implements AttemptGiver {
  private readonly pool: ExecutorPool;
  private readonly services: Services;
  private readonly blame: CircuitBreaker;
  private readonly sandbox: HostedListener;
  private version: FunctionVersion;
  private placement: Placement | undefined;
  private readonly leaving = new Set<Placement>();
  private waiting: SandboxAttempt[] = [];
  /** Number of ended attempts whose listeners are notified once a stack is mapped. */
  private unreported = 0;
  private placing = false;
  /** Its idle executor was closed. The next event starts one. */
  private resting = false;
  /** The maximum number of executors is reached and no executor is idle. */
  private crowded = false;
  private parking = false;
  private failure: WatchfireError | undefined;
  private solo = 0;
  private closed = false;
  /** Gets its deliveries instead, while there is a canary. */
  route: CanaryRoute | undefined;
  private readonly listener: PlacementListener = {
    lost: (placement, involvement, reason) => this.lost(placement, involvement, reason),
    room: () => this.flush(),
    returned: (attempts) => this.returned(attempts),
  };

  constructor(
    pool: ExecutorPool,
    services: Services,
    blame: CircuitBreaker,
    version: FunctionVersion,
    sandbox: HostedListener,
  ) {
    this.pool = pool;
    this.services = services;
    this.blame = blame;
    this.version = version;
    this.sandbox = sandbox;
  }

  get state(): HostedState {
    const { kills } = this.blame;
    return { ...this.said(kills, Math.ceil(this.parkedMs / 1000)), kills };
  }

  private said(kills: number, seconds: number): Pick<HostedState, "state" | "detail"> {
    if (this.failure) return { state: "failed", detail: this.failure.message };
    const brought = `it brought ${kills} executor${kills === 1 ? "" : "s"} down`;
    if (seconds > 0) return { state: "parked", detail: `runs again in ${seconds} s: ${brought}` };
    if (this.crowded) return { state: "loading", detail: "waits for an executor: all that there may be are at work" };
    if (this.blame.isForGood) {
      const why = kills > 0 ? brought : "executors died again and again while it ran there";
      return { state: "quarantined", detail: `runs in a separate executor until its code changes: ${why}` };
    }
    if (this.blame.isAlone) {
      const why = kills > 0 ? brought : "it may have brought an executor down";
      return { state: "quarantined", detail: `runs in a separate executor for some time and events: ${why}` };
    }
    return { state: this.placement || this.resting ? "ready" : "loading", detail: "" };
  }

  /** Number of attempts that wait or run, or whose end has not been reported. */
  get size(): number {
    let size = this.waiting.length + this.unreported + (this.placement?.size ?? 0);
    for (const placement of this.leaving) size += placement.size;
    return size;
  }

  /** Loads the code. Throws if it cannot be loaded. */
  async load(): Promise<void> {
    this.placement = await this.place(this.version);
    this.flush();
  }

  /** Loads new code and switches to it once it has loaded. Running attempts finish on the old code. */
  async replace(version: FunctionVersion): Promise<void> {
    const wasAlone = this.blame.isAlone;
    this.blame.renew(this.now);
    const next = await this.place(version);
    this.version = version;
    this.failure = undefined;
    this.resting = false;
    this.leave();
    this.placement = next;
    if (wasAlone && !this.blame.isAlone) this.pool.leaveAlone(this.name);
    this.flush();
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    this.waiting.push(new SandboxAttempt(delivery, listener, this));
    this.flushSoon();
  }

  /**
   * Notifies an attempt's listener after the frame that ended it has been processed, so that an error of a listener is not
   * charged to the executor.
   */
  ended({ listener }: SandboxAttempt, outcome: Outcome | Promise<Outcome>): void {
    if (outcome instanceof Promise) {
      this.unreported++;
      outcome.then((known) => {
        this.unreported--;
        notifySoon(listener, known);
      });
    } else notifySoon(listener, outcome);
    this.trust(outcome);
    // Other attempts may have waited for the end of this one.
    if (this.waiting.length > 0) this.flushSoon();
  }

  /** Returns attempts that have not begun to the engine, as soon as their executor has confirmed that. */
  recall(): void {
    for (const attempt of this.waiting.splice(0)) attempt.end({ type: "unbegun" });
    for (const placement of this.placements) placement.recall(true);
  }

  /** Flushes after this turn of the event loop, so that its deliveries are sent together. */
  private flushSoon(): void {
    if (due.size === 0) setImmediate(flushAll);
    due.add(this);
  }

  private get placements(): readonly Placement[] {
    return [...this.leaving, ...(this.placement ? [this.placement] : [])];
  }

  private returned(attempts: readonly SandboxAttempt[]): void {
    for (const attempt of attempts.filter(({ isRecalled }) => isRecalled)) attempt.end({ type: "unbegun" });
    this.waiting.unshift(...attempts.filter(({ isRecalled }) => !isRecalled));
    if (this.closed) this.giveBack();
    else this.flushSoon();
  }

  /** Accepts no more attempts. Running ones may finish. */
  unload(): void {
    this.closed = true;
    this.giveBack();
    this.leave();
    this.pool.leaveAlone(this.name);
  }

  /** Interrupts all attempts; they will run again later. */
  interrupt(): void {
    this.closed = true;
    this.giveBack();
    for (const placement of this.placements) placement.interrupt();
  }

  /** Clears it of these executors' deaths, which another function is proven to have caused. */
  clear(executors: readonly number[]): void {
    const wasAlone = this.blame.isAlone;
    for (const executor of executors) this.blame.clear(executor);
    if (wasAlone && !this.blame.isAlone) this.rejoin();
  }

  /** Numbers of the executors of whose deaths it is suspected. */
  get cases(): readonly number[] {
    return this.blame.cases;
  }

  /** The function's name, the same for all its instances. */
  get functionName(): string {
    return this.version.manifest.name;
  }

  private get name(): string {
    return this.version.instance;
  }

  private get now(): number {
    return this.services.clock.monotonic();
  }

  /** Milliseconds until it may run again after it ended executors; else 0. */
  get parkedMs(): number {
    return this.blame.parkedMs(this.now);
  }

  private leave(): void {
    const { placement } = this;
    if (!placement) return;
    this.placement = undefined;
    placement.unload();
    if (placement.size > 0) this.leaving.add(placement);
  }

  private giveBack(): void {
    for (const attempt of this.waiting.splice(0)) attempt.end({ type: "interrupted" });
  }

  private trust(outcome: Outcome | Promise<Outcome>): void {
    const isInterrupted = !(outcome instanceof Promise) && outcome.type === "interrupted";
    if (!this.blame.isAlone || isInterrupted) return;
    this.blame.finished(this.now);
    if (!this.blame.isAlone) this.rejoin();
  }

  /** Ends the quarantine. Its own executor ends after its last event there. */
  private rejoin(): void {
    this.leave();
    this.pool.leaveAlone(this.name);
    if (!this.closed) this.placeAgain();
  }

  /** Sends waiting attempts, as far as there is room. */
  flush(): void {
    for (const placement of this.leaving) if (placement.size === 0) this.leaving.delete(placement);
    if (this.waiting.length === 0 || this.park()) return;
    const { placement } = this;
    if (!placement) {
      this.placeAgain();
      return;
    }
    while (this.waiting.length > 0) {
      const room = Math.min(batchLimit, placement.room, this.shareOf(placement));
      if (room <= 0) return;
      placement.run(this.waiting.splice(0, room));
    }
  }

  /**
   * Returns how many more attempts may be sent to a placement. While others still run in placements it is leaving, all together
   * may not exceed its concurrency.
   */
  private shareOf(placement: Placement): number {
    if (this.leaving.size === 0) return Number.POSITIVE_INFINITY;
    const others = [...this.leaving].reduce((sum, { size }) => sum + size, 0);
    return placement.concurrency - others - placement.size;
  }

  /** Parks it for its time and gives waiting attempts back to be redelivered later. Returns whether it is parked. */
  private park(): boolean {
    const ms = this.parkedMs;
    if (ms <= 0) return false;
    this.giveBack();
    if (!this.parking) {
      this.parking = true;
      const wake = () => {
        this.parking = false;
        if (!this.closed) this.placeAgain();
      };
      this.services.clock.after(ms, wake, { unref: true });
    }
    return true;
  }

  private async placeAgain(): Promise<void> {
    if (this.placing || this.closed || this.placement || this.park()) return;
    this.placing = true;
    const { version } = this;
    try {
      const placement = await this.place(version);
      // It may have been unloaded, or given other code, meanwhile.
      if (this.closed || this.version !== version) placement.unload();
      else {
        this.placement = placement;
        this.resting = false;
        this.failure = undefined;
      }
    } catch (error) {
      if (this.closed || this.version !== version) return;
      this.failure = error as WatchfireError;
      const { code, detail } = this.failure;
      const failed = { name: "LoadError", message: detail.what, stack: describeFault(code, detail), code };
      for (const attempt of this.waiting.splice(0)) attempt.end({ type: "failed", error: failed, durationMs: 0 });
    } finally {
      this.placing = false;
    }
    this.flush();
  }

  private async place(version: FunctionVersion): Promise<Placement> {
    let stillborn = 0;
    for (let attempt = 1; ; ) {
      const executor = this.take(version);
      if (!executor) {
        await this.queue();
        continue;
      }
      // In the same turn, because an executor's death is only reported to functions that are on it.
      const placement = new Placement(executor, version, this.services, this.solo, this.listener);
      try {
        await placement.loaded;
        // Its executor may have announced its end at the same time.
        if (!placement.isGone) return placement;
      } catch (error) {
        if (error instanceof WatchfireError) throw error;
      }
      // The executor decides whose code it died of. If this function keeps losing executors to others, that is not its failure.
      stillborn = executor.hasRunCode ? 0 : stillborn + 1;
      if (!this.closed && stillborn < stillbirths && attempt++ >= restlessTries)
        await pause(this.services.clock, restMs);
      if (this.closed || stillborn === stillbirths) {
        throw new WatchfireError("WF_SANDBOX_EXECUTOR", { what: `executors died while ${this.name} was loaded` });
      }
    }
  }

  /** Returns an executor, or `undefined` while the maximum number is reached and all are busy. */
  private take({ instance, manifest: { trustGroup = commonGroup } }: FunctionVersion): ExecutorHandle | undefined {
    const executor = this.blame.isAlone ? this.pool.takeAlone(instance) : this.pool.take(trustGroup);
    this.crowded = executor === undefined;
    return executor;
  }

  private async queue(): Promise<void> {
    await pause(this.services.clock, restMs);
    if (!this.closed) return;
    throw new WatchfireError("WF_SANDBOX_EXECUTOR", { what: `${this.name} is unloaded, and never had an executor` });
  }

  private lost(placement: Placement, involvement: Involvement, reason: DeathReason): void {
    this.leaving.delete(placement);
    this.blame.died(placement.executorNumber, involvement, this.now);
    if (involvement === "culprit" || involvement === "proven") this.sandbox.killed(this, involvement === "proven");
    this.solo = involvement === "bystander" || involvement === "present" ? 0 : batchLimit;
    if (this.placement !== placement) return;
    this.placement = undefined;
    // Attempts that finish on a doomed executor are counted until it is gone.
    if (placement.size > 0) this.leaving.add(placement);
    if (reason === "closed" && this.waiting.length === 0) this.resting = !this.closed;
    else if (!this.closed) this.placeAgain();
  }
}
