import { pause } from "../clock.ts";
import type { Delivery, Outcome } from "../dispatch/delivery.ts";
import { describeFault, WatchfireError } from "../errors.ts";
import { Attempt } from "./attempt.host.ts";
import type { Verdict } from "./executor.host.ts";
import { Placement, type PlacementListener, type Services, type Version } from "./placement.host.ts";
import type { Pool } from "./pool.host.ts";

/** Executors that a function may bring down before it runs alone. */
const killsToQuarantine = 2;
/** Events that a suspect has to finish alone before it may join the others again. */
const eventsToTrust = 20;
/** Deliveries of one frame. */
const batchLimit = 64;
/** Executors in a row that end before any code ran there, after which loading is given up: none can start. */
const stillbirths = 5;
/** Executors in a row that die of others' code while a function loads, after which it rests before it tries again, and how long. */
const restlessTries = 5;
const restMs = 1000;

/** Milliseconds between two looks at whether a quarantine executor is idle, once its function has left. */
const leavePollMs = 100;

/** How a function stands in the sandbox. */
export interface FunctionState {
  readonly state: "loading" | "ready" | "quarantined" | "failed";
  /** In words, what is wrong; empty where nothing is. */
  readonly detail: string;
  /** Executors it brought down since its code was loaded. */
  readonly kills: number;
}

/** A loaded function: where it runs now, and what waits while it moves. */
export class HostedFunction {
  private readonly pool: Pool;
  private readonly services: Services;
  private version: Version;
  private placement: Placement | undefined;
  private readonly leaving = new Set<Placement>();
  private waiting: Attempt[] = [];
  private flushing = false;
  private placing = false;
  private failure: WatchfireError | undefined;
  private kills = 0;
  /** Events left to finish alone; 0 where the function is not under suspicion. */
  private suspicion = 0;
  private solo = 0;
  private closed = false;
  private readonly listener: PlacementListener = {
    lost: (placement, verdict) => this.lost(placement, verdict),
    room: () => this.flush(),
  };

  constructor(pool: Pool, services: Services, version: Version) {
    this.pool = pool;
    this.services = services;
    this.version = version;
  }

  get state(): FunctionState {
    const { kills } = this;
    if (this.failure) return { state: "failed", detail: this.failure.message, kills };
    if (kills >= killsToQuarantine) {
      const detail = `runs alone in an executor of its own, since it brought ${kills} down; it leaves when its code changes`;
      return { state: "quarantined", detail, kills };
    }
    if (this.suspicion > 0) {
      const detail = "runs alone for some events, since it may have brought an executor down";
      return { state: "quarantined", detail, kills };
    }
    return { state: this.placement ? "ready" : "loading", detail: "", kills };
  }

  /** Attempts that wait or run. */
  get size(): number {
    let size = this.waiting.length + (this.placement?.size ?? 0);
    for (const placement of this.leaving) size += placement.size;
    return size;
  }

  /** Loads the code; throws why it cannot be. */
  async load(): Promise<void> {
    this.placement = await this.place(this.version);
    this.flush();
  }

  /** Loads new code beside the old, and swaps once it has loaded; what runs finishes on the old. */
  async replace(version: Version): Promise<void> {
    const next = await this.place(version);
    this.version = version;
    this.failure = undefined;
    const wasAlone = this.isAlone;
    this.kills = 0;
    this.suspicion = 0;
    this.leave();
    this.placement = next;
    if (wasAlone) this.leaveQuarantine();
    this.flush();
  }

  run(delivery: Delivery): Promise<Outcome> {
    return new Promise((resolve) => {
      const settle = (outcome: Outcome) => {
        resolve(outcome);
        this.trust(outcome);
      };
      this.waiting.push(new Attempt(delivery, settle));
      if (this.flushing) return;
      this.flushing = true;
      // After this turn of the event loop: what is delivered in it travels together.
      setImmediate(() => {
        this.flushing = false;
        this.flush();
      });
    });
  }

  /** Takes no more; what runs may finish. */
  unload(): void {
    this.closed = true;
    for (const attempt of this.waiting.splice(0)) attempt.end({ type: "interrupted" });
    const wasAlone = this.isAlone;
    this.leave();
    if (wasAlone) this.leaveQuarantine();
  }

  /** Ends all that runs, to be run again some other time. */
  interrupt(): void {
    this.closed = true;
    for (const attempt of this.waiting.splice(0)) attempt.end({ type: "interrupted" });
    for (const placement of [...this.leaving, ...(this.placement ? [this.placement] : [])]) placement.interrupt();
  }

  private get isAlone(): boolean {
    return this.kills >= killsToQuarantine || this.suspicion > 0;
  }

  private leave(): void {
    const { placement } = this;
    if (!placement) return;
    this.placement = undefined;
    placement.unload();
    if (placement.size > 0) this.leaving.add(placement);
  }

  /** Out of quarantine: the executor there ends once the last event alone has. */
  private leaveQuarantine(): void {
    const executor = this.pool.leaveQuarantine(this.version.manifest.name);
    const rest = [...this.leaving];
    const look = () => {
      if (rest.every((placement) => placement.size === 0)) executor?.kill("closed", "the function left quarantine");
      else this.services.clock.after(leavePollMs, look, { unref: true });
    };
    look();
  }

  /** Enough events alone without harm: the function was not what brought the executor down. */
  private trust(outcome: Outcome): void {
    if (this.suspicion === 0 || outcome.type === "interrupted" || --this.suspicion > 0 || this.isAlone) return;
    this.leave();
    this.leaveQuarantine();
    if (!this.closed) this.placeAgain();
  }

  private flush(): void {
    for (const placement of this.leaving) if (placement.size === 0) this.leaving.delete(placement);
    const { placement } = this;
    if (this.waiting.length === 0) return;
    if (!placement) {
      this.placeAgain();
      return;
    }
    while (this.waiting.length > 0 && !placement.isFull) placement.run(this.waiting.splice(0, batchLimit));
  }

  private async placeAgain(): Promise<void> {
    if (this.placing || this.closed) return;
    this.placing = true;
    const { version } = this;
    try {
      const placement = await this.place(version);
      // Meanwhile it may have been unloaded, or been given other code.
      if (this.closed || this.version !== version) placement.unload();
      else {
        this.placement = placement;
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

  private async place(version: Version): Promise<Placement> {
    const { name } = version.manifest;
    let stillborn = 0;
    for (let attempt = 1; ; attempt++) {
      const executor = this.isAlone ? this.pool.takeQuarantine(name) : this.pool.take();
      const placement = new Placement(executor, version, this.services, this.solo, this.listener);
      try {
        await placement.loaded;
        return placement;
      } catch (error) {
        if (error instanceof WatchfireError) throw error;
        // Of whose code one died is settled there; to whom that happens again and again it is no failure.
        stillborn = executor.hasRunCode ? 0 : stillborn + 1;
        if (!this.closed && stillborn < stillbirths && attempt >= restlessTries)
          await pause(this.services.clock, restMs);
        if (this.closed || stillborn === stillbirths) {
          throw new WatchfireError("WF_SANDBOX_EXECUTOR", { what: `executors died while ${name} was loaded` });
        }
      }
    }
  }

  private lost(placement: Placement, verdict: Verdict): void {
    this.leaving.delete(placement);
    if (verdict === "culprit") this.kills++;
    if (verdict === "suspect") this.suspicion = eventsToTrust;
    this.solo = verdict === "bystander" ? 0 : batchLimit;
    if (this.placement !== placement) return;
    this.placement = undefined;
    // Those that finish on a doomed executor are counted until it is gone.
    if (placement.size > 0) this.leaving.add(placement);
    if (!this.closed) this.placeAgain();
  }
}
