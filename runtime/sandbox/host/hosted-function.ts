import { pause } from "../../base/clock.ts";
import { describeFault, WatchfireError } from "../../base/errors.ts";
import type { Delivery, DeliveryListener, Outcome } from "../../engine/delivery/delivery.ts";
import { type AttemptGiver, SandboxAttempt } from "./attempt.ts";
import type { CircuitBreaker, Involvement } from "./circuit-breaker.ts";
import type { ExecutorHandle } from "./executor.ts";
import type { DeathReason } from "./executor-process.ts";
import { type FunctionVersion, Placement, type PlacementListener, type Services } from "./placement.ts";
import { commonGroup, type ExecutorPool } from "./pool.ts";

/** Deliveries of one frame. */
const batchLimit = 64;
/** Executors in a row that end before any code ran there, after which loading is given up: none can start. */
const stillbirths = 5;
/** Executors in a row that die of others' code while a function loads, after which it rests before it tries again, and how long. */
const restlessTries = 5;
const restMs = 1000;

/** Those with deliveries of this turn of the event loop. All send in one go, so that their frames to one executor share a write. */
const due = new Set<{ flush(): void }>();

function flushAll(): void {
  const all = [...due];
  due.clear();
  for (const each of all) each.flush();
}

/** Listeners that have not heard yet how their attempts ended. */
let endings: { readonly listener: DeliveryListener; readonly outcome: Outcome }[] = [];

function tellSoon(listener: DeliveryListener, outcome: Outcome): void {
  if (endings.length === 0) queueMicrotask(tellAll);
  endings.push({ listener, outcome });
}

function tellAll(): void {
  const all = endings;
  endings = [];
  for (const { listener, outcome } of all) listener.ended(outcome);
}

/** How a function stands in the sandbox. */
export interface HostedState {
  readonly state: "loading" | "ready" | "quarantined" | "parked" | "failed";
  /** In words, what is wrong; empty where nothing is. */
  readonly detail: string;
  /** Executors it brought down since its code was loaded. */
  readonly kills: number;
}

/** What a hosted function tells the sandbox. */
export interface HostedListener {
  /** It brought an executor down, which it had to itself where it is `proven`. */
  killed(killer: HostedFunction, isProven: boolean): void;
}

/** A loaded function: where it runs now, and what waits while it moves. */
export class HostedFunction implements AttemptGiver {
  private readonly pool: ExecutorPool;
  private readonly services: Services;
  private readonly blame: CircuitBreaker;
  private readonly sandbox: HostedListener;
  private version: FunctionVersion;
  private placement: Placement | undefined;
  private readonly leaving = new Set<Placement>();
  private waiting: SandboxAttempt[] = [];
  /** Attempts that are over, whose listeners hear of it once a stack has its places. */
  private untold = 0;
  private placing = false;
  /** Its executor had nothing to do and was let go of: the next event gets one. */
  private resting = false;
  /** There are as many executors as there may be, and none is idle. */
  private crowded = false;
  private parking = false;
  private failure: WatchfireError | undefined;
  private solo = 0;
  private closed = false;
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
      return { state: "quarantined", detail: `runs alone until its code changes: ${why}` };
    }
    if (this.blame.isAlone) {
      const why = kills > 0 ? brought : "it may have brought an executor down";
      return { state: "quarantined", detail: `runs alone for some time and events: ${why}` };
    }
    return { state: this.placement || this.resting ? "ready" : "loading", detail: "" };
  }

  /** Attempts that wait or run, or whose end has yet to be told. */
  get size(): number {
    let size = this.waiting.length + this.untold + (this.placement?.size ?? 0);
    for (const placement of this.leaving) size += placement.size;
    return size;
  }

  /** Loads the code; throws why it cannot be. */
  async load(): Promise<void> {
    this.placement = await this.place(this.version);
    this.flush();
  }

  /** Loads new code beside the old, and swaps once it has loaded; what runs finishes on the old. */
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

  /** Its listener is told once the frame that ended it has been read: a fault of a listener is not its executor's. */
  ended({ listener }: SandboxAttempt, outcome: Outcome | Promise<Outcome>): void {
    if (outcome instanceof Promise) {
      this.untold++;
      outcome.then((known) => {
        this.untold--;
        tellSoon(listener, known);
      });
    } else tellSoon(listener, outcome);
    this.trust(outcome);
    // It may have been one of those for whose end others waited.
    if (this.waiting.length > 0) this.flushSoon();
  }

  /** Gives back what has not begun, as soon as its executor has said so. */
  recall(): void {
    for (const attempt of this.waiting.splice(0)) attempt.end({ type: "unbegun" });
    for (const placement of this.placements) placement.recall(true);
  }

  /** After this turn of the event loop: what is delivered in it travels together. */
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

  /** Takes no more; what runs may finish. */
  unload(): void {
    this.closed = true;
    this.giveBack();
    this.leave();
    this.pool.leaveAlone(this.name);
  }

  /** Ends all that runs, to be run again some other time. */
  interrupt(): void {
    this.closed = true;
    this.giveBack();
    for (const placement of this.placements) placement.interrupt();
  }

  /** Another is proven to have brought those executors down. */
  clear(executors: readonly number[]): void {
    const wasAlone = this.blame.isAlone;
    for (const executor of executors) this.blame.clear(executor);
    if (wasAlone && !this.blame.isAlone) this.rejoin();
  }

  /** The executors of whose deaths it is suspected. */
  get cases(): readonly number[] {
    return this.blame.cases;
  }

  /** The function's own name, whichever of its instances this is. */
  get functionName(): string {
    return this.version.manifest.name;
  }

  private get name(): string {
    return this.version.instance;
  }

  private get now(): number {
    return this.services.clock.monotonic();
  }

  /** Milliseconds until it may run again, where it brought executors down; else 0. */
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

  /** Back among the others: its own executor ends once its last event there has. */
  private rejoin(): void {
    this.leave();
    this.pool.leaveAlone(this.name);
    if (!this.closed) this.placeAgain();
  }

  /** Sends what waits, as far as there is room. */
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

  /** How many attempts may be there: where others still run in places that it leaves, no more than may run at once in all. */
  private shareOf(placement: Placement): number {
    if (this.leaving.size === 0) return Number.POSITIVE_INFINITY;
    const others = [...this.leaving].reduce((sum, { size }) => sum + size, 0);
    return placement.concurrency - others - placement.size;
  }

  /** Stands still for its time; what it is sent meanwhile comes again later. Gives whether it does. */
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
      // Meanwhile it may have been unloaded, or been given other code.
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
      // In the same turn: an executor that dies tells only those who are there.
      const placement = new Placement(executor, version, this.services, this.solo, this.listener);
      try {
        await placement.loaded;
        // Its executor may have said in the same breath that it ends.
        if (!placement.isGone) return placement;
      } catch (error) {
        if (error instanceof WatchfireError) throw error;
      }
      // Of whose code one died is settled there; to whom that happens again and again it is no failure.
      stillborn = executor.hasRunCode ? 0 : stillborn + 1;
      if (!this.closed && stillborn < stillbirths && attempt++ >= restlessTries)
        await pause(this.services.clock, restMs);
      if (this.closed || stillborn === stillbirths) {
        throw new WatchfireError("WF_SANDBOX_EXECUTOR", { what: `executors died while ${this.name} was loaded` });
      }
    }
  }

  /** Undefined while there are as many executors as there may be, and all are at work. */
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
    // Those that finish on a doomed executor are counted until it is gone.
    if (placement.size > 0) this.leaving.add(placement);
    if (reason === "closed" && this.waiting.length === 0) this.resting = !this.closed;
    else if (!this.closed) this.placeAgain();
  }
}
