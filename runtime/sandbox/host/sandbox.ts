import type { Logger } from "pino";
import { type Clock, pause } from "../../base/clock.ts";
import { describeFault } from "../../base/errors.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import type { Delivery, DeliveryListener, Runner } from "../../engine/delivery/delivery.ts";
import type { GuestOutput, HostCalls } from "../host-calls.ts";
import { MappingThread } from "../positions/mapping-thread.ts";
import { StackMapper } from "../positions/stack-mapper.ts";
import { launchAhead } from "./child-link.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { DeathReason } from "./executor-process.ts";
import { guestScript } from "./guest-script.ts";
import { HostedFunction, type HostedListener, type HostedState } from "./hosted-function.ts";
import type { Launch } from "./link.ts";
import type { FunctionVersion } from "./placement.ts";
import { ExecutorPool } from "./pool.ts";

/** What the sandbox tells about itself, for metrics. */
export interface SandboxObserver {
  /** An executor is gone; `culprits` are the functions that were running there. Not called when the sandbox is closed. */
  executorDied(reason: DeathReason, culprits: readonly string[]): void;
  /** A function is charged with an executor's death. */
  functionKilled?(name: string): void;
}

export interface SandboxOptions {
  /** Executor processes that functions share. One per core is plenty. */
  readonly executors: number;
  /** Executors beside those: one for each trust group, and one for each function that runs alone. Default 32. */
  readonly ownExecutors?: number;
  readonly hostCalls: HostCalls;
  readonly output: GuestOutput;
  readonly clock: Clock;
  /** How executors are started. Default: as children of this process. */
  readonly launch?: Launch;
  /** Milliseconds without an event after which an isolate is let go of, to be opened at the next. Default 5 minutes. */
  readonly idleMs?: number;
  /** Events after which an isolate is replaced. Default 100,000: five seconds of a busy function, for 5 ms of loading. */
  readonly recycleEvents?: number;
  readonly observer?: SandboxObserver;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** Functions whose past is kept, those that are loaded among them: far more than a cluster has. */
const maxBlames = 10_000;

/** Milliseconds between two looks at what still runs, while closing. */
const closePollMs = 10;

/**
 * Runs handlers in isolates, in child processes. A handler that breaks a limit fails its own attempt. One that takes
 * its process down fails its own attempt as well, and its neighbours' attempts are run again, uncounted.
 */
export class Sandbox implements Runner, HostedListener {
  private readonly options: SandboxOptions;
  private readonly functions = new Map<string, HostedFunction>();
  private readonly unloaded = new Set<HostedFunction>();
  /** What functions have to answer for, by name: a function that is taken away and comes again is the same. */
  private readonly blames = new Map<string, CircuitBreaker>();
  private readonly mapping: MappingThread;
  private pool: Promise<ExecutorPool> | undefined;
  private closed = false;

  constructor(options: SandboxOptions) {
    this.options = options;
    this.mapping = new MappingThread(options.clock);
  }

  /** Starts the executors ahead of the first function, so that their start-up overlaps with other work. */
  warm(): void {
    this.pool ??= this.open();
    // Whoever loads a function hears of a failure.
    this.pool.catch(() => undefined);
  }

  /**
   * Loads a function, or new code in its place once that has loaded; what runs finishes on the old code.
   * Throws a WatchfireError with the place in the author's file where the module cannot be loaded; a version that was
   * there before stays.
   * @param instance what it is called from then on. Default: the function's name
   */
  async load(
    manifest: FunctionVersion["manifest"],
    bundle: Bundle,
    env: Readonly<Record<string, string>>,
    instance = manifest.name,
  ): Promise<void> {
    const mapper = new StackMapper(manifest.name, bundle, this.mapping);
    const version: FunctionVersion = { manifest, instance, bundle, env, mapper, told: new Set() };
    const existing = this.functions.get(instance);
    if (existing) return existing.replace(version);
    this.pool ??= this.open();
    const pool = await this.pool;
    const blame = this.blameOf(instance);
    blame.renew(this.options.clock.monotonic());
    const added = new HostedFunction(pool, this.options, blame, version, this);
    await added.load();
    // Of two that loaded at once, the later stays.
    this.functions.get(instance)?.unload();
    this.functions.set(instance, added);
  }

  /** A runner of some instances alone. `instanceOf`: which one a function's events go to. */
  instances(instanceOf: (functionName: string) => string): Runner {
    return {
      give: (delivery, listener) => this.giveTo(instanceOf(delivery.function), delivery, listener),
      recall: (name) => this.recall(instanceOf(name)),
    };
  }

  give(delivery: Delivery, listener: DeliveryListener): void {
    this.giveTo(delivery.function, delivery, listener);
  }

  private giveTo(instance: string, delivery: Delivery, listener: DeliveryListener): void {
    const target = this.functions.get(instance);
    if (target && !this.closed) {
      target.give(delivery, listener);
      return;
    }
    const code = "WF_SANDBOX_NOT_LOADED";
    const what = `function ${delivery.function} is not loaded`;
    const error = { name: "LoadError", message: what, stack: describeFault(code, { what }), code };
    queueMicrotask(() => listener.ended({ type: "failed", error, durationMs: 0 }));
  }

  recall(instance: string): void {
    this.functions.get(instance)?.recall();
  }

  /** Takes an instance away; what runs may finish. */
  unload(instance: string): void {
    const gone = this.functions.get(instance);
    if (!gone) return;
    this.functions.delete(instance);
    gone.unload();
    for (const one of this.unloaded) if (one.size === 0) this.unloaded.delete(one);
    if (gone.size > 0) this.unloaded.add(gone);
  }

  /** A hosted function's word: it is charged. Whoever was suspected with it is cleared where it is proven to be the one. */
  killed(killer: HostedFunction, isProven: boolean): void {
    this.options.observer?.functionKilled?.(killer.functionName);
    if (!isProven) return;
    for (const other of this.functions.values()) if (other !== killer) other.clear(killer.cases);
  }

  /** How an instance stands; undefined for one that is not loaded. */
  status(instance: string): HostedState | undefined {
    return this.functions.get(instance)?.state;
  }

  /** Functions that stand still because they brought executors down, with the seconds that are left, of several instances the most. */
  parked(): readonly { readonly name: string; readonly seconds: number }[] {
    const left = new Map<string, number>();
    for (const { functionName, parkedMs } of this.functions.values()) {
      if (parkedMs > 0) left.set(functionName, Math.max(left.get(functionName) ?? 0, parkedMs / 1000));
    }
    return [...left].map(([name, seconds]) => ({ name, seconds }));
  }

  /** Each executor's process, for metrics. */
  async executors(): Promise<readonly { readonly pid: number | undefined; readonly peakMemory: number }[]> {
    return (await this.pool)?.executors.map(({ pid, peakMemory }) => ({ pid, peakMemory })) ?? [];
  }

  /** Waits up to `graceMs` for what runs, then ends every executor; what was still running is interrupted. */
  async close(graceMs: number): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    const { clock } = this.options;
    const all = [...this.functions.values(), ...this.unloaded];
    const until = clock.monotonic() + graceMs;
    while (all.some((one) => one.size > 0) && clock.monotonic() < until) await pause(clock, closePollMs);
    for (const one of all) one.interrupt();
    await this.mapping.close();
    (await this.pool)?.close();
  }

  private blameOf(name: string): CircuitBreaker {
    const blame = this.blames.get(name) ?? new CircuitBreaker();
    this.blames.delete(name);
    // The oldest go first.
    for (const other of this.blames.keys()) {
      if (this.blames.size < maxBlames) break;
      if (!this.functions.has(other)) this.blames.delete(other);
    }
    this.blames.set(name, blame);
    return blame;
  }

  private async open(): Promise<ExecutorPool> {
    const { clock, executors, launch = launchAhead(), log, observer } = this.options;
    const { idleMs = 300_000, recycleEvents = 100_000 } = this.options;
    const settings = { guest: await guestScript(), clock, launch, idleMs, recycleEvents };
    const limits = { shared: executors, own: this.options.ownExecutors ?? 32 };
    return new ExecutorPool(settings, limits, (executor, reason, detail, culprits) => {
      if (reason === "closed") return;
      log.warn({ pid: executor.pid, reason, detail, functions: culprits }, "executor died");
      observer?.executorDied(reason, culprits);
    });
  }
}
