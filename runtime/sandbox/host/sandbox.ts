import type { Logger } from "pino";
import { type Clock, pause } from "../../base/clock.ts";
import { describeFault } from "../../base/errors.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import type { Delivery, DeliveryListener, Runner } from "../../engine/delivery/delivery.ts";
import type { GuestOutput, HostCalls } from "../host-calls.ts";
import { MappingThread } from "../positions/mapping-thread.ts";
import { StackMapper } from "../positions/stack-mapper.ts";
import type { CanaryRoute } from "./canary-route.ts";
import { launchAhead } from "./child-link.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { DeathReason } from "./executor-process.ts";
import { guestScript } from "./guest-script.ts";
import { HostedFunction, type HostedListener, type HostedState } from "./hosted-function.ts";
import type { Launch } from "./link.ts";
import type { FunctionVersion } from "./placement.ts";
import { ExecutorPool } from "./pool.ts";

/** Callbacks for metrics of the sandbox. */
export interface SandboxObserver {
  /** An executor died; `culprits` are the functions that were running there. Not called when the sandbox is closed. */
  executorDied(reason: DeathReason, culprits: readonly string[]): void;
  /** A function is charged with an executor's death. */
  functionKilled?(name: string): void;
}

export interface SandboxOptions {
  /** Number of executor processes that functions share. One per core is enough. */
  readonly executors: number;
  /** Maximum number of further executors: one for each trust group and for each quarantined function. Default 32. */
  readonly ownExecutors?: number;
  readonly hostCalls: HostCalls;
  readonly output: GuestOutput;
  readonly clock: Clock;
  /** Starts executors. Default: as children of this process. */
  readonly launch?: Launch;
  /** Milliseconds without an event after which an isolate is closed; the next event opens one. Default 5 minutes. */
  readonly idleMs?: number;
  /**
   * Number of events after which an isolate is replaced. Default 100,000: five seconds of a busy function, for 5 ms of loading.
   */
  readonly recycleEvents?: number;
  readonly observer?: SandboxObserver;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** Maximum number of functions whose record is kept, including loaded ones: far more than a cluster has. */
const maxBlames = 10_000;

/** Milliseconds between two checks of what still runs, while closing. */
const closePollMs = 10;

/**
 * Runs handlers in isolates, in child processes. A handler that breaks a limit fails its own attempt. A handler that crashes its
 * process also fails its own attempt; attempts of other functions there are interrupted and run again, uncounted.
 */
export class Sandbox implements Runner, HostedListener {
  private readonly options: SandboxOptions;
  private readonly functions = new Map<string, HostedFunction>();
  private readonly unloaded = new Set<HostedFunction>();
  /** Records of functions by name. A function that is removed and added again keeps its record. */
  private readonly blames = new Map<string, CircuitBreaker>();
  private readonly mapping: MappingThread;
  private pool: Promise<ExecutorPool> | undefined;
  private closed = false;

  constructor(options: SandboxOptions) {
    this.options = options;
    this.mapping = new MappingThread(options.clock);
  }

  /** Starts the executors before the first function is loaded, so that their start overlaps with other work. */
  warm(): void {
    this.pool ??= this.open();
    // The failure is reported to whoever loads a function.
    this.pool.catch(() => undefined);
  }

  /**
   * Loads a function, or replaces its code once the new code has loaded. Running attempts finish on the old code. Throws a
   * WatchfireError with the place in the author's file if the module cannot be loaded; a version that was loaded before stays.
   * @param instance key of the function from then on. Default: the function's name
   */
  async load(
    manifest: FunctionVersion["manifest"],
    bundle: Bundle,
    env: Readonly<Record<string, string>>,
    instance = manifest.name,
  ): Promise<void> {
    const mapper = new StackMapper(manifest.name, bundle, this.mapping);
    const version: FunctionVersion = { manifest, instance, bundle, env, mapper, reported: new Set() };
    const existing = this.functions.get(instance);
    if (existing) return existing.replace(version);
    this.pool ??= this.open();
    const pool = await this.pool;
    const blame = this.blameOf(instance);
    blame.renew(this.options.clock.monotonic());
    const added = new HostedFunction(pool, this.options, blame, version, this);
    await added.load();
    // If two loads ran concurrently, the one that finished later stays.
    this.functions.get(instance)?.unload();
    this.functions.set(instance, added);
  }

  /** Returns a runner for some instances. `instanceOf` returns the instance that gets a function's events. */
  instances(instanceOf: (functionName: string) => string): Runner {
    return {
      give: (delivery, listener) => this.give(delivery, listener, instanceOf(delivery.function)),
      recall: (name) => this.recall(instanceOf(name)),
    };
  }

  /** @param instance the loaded instance that runs it. Default: the one with the function's name */
  give(delivery: Delivery, listener: DeliveryListener, instance = delivery.function): void {
    const target = this.functions.get(instance);
    if (target && !this.closed) {
      (target.route ?? target).give(delivery, listener);
      return;
    }
    const code = "WF_SANDBOX_NOT_LOADED";
    const what = `function ${delivery.function} is not loaded`;
    const error = { name: "LoadError", message: what, stack: describeFault(code, { what }), code };
    queueMicrotask(() => listener.ended({ type: "failed", error, durationMs: 0 }));
  }

  recall(instance: string): void {
    const target = this.functions.get(instance);
    target?.route?.recall();
    target?.recall();
  }

  /** Lets a route divide the deliveries of an instance between it and the loaded instance `canary`. */
  divide(instance: string, canary: string, route: CanaryRoute): void {
    const [current, other] = [this.functions.get(instance), this.functions.get(canary)];
    if (!current || !other) return;
    route.begin(current, other);
    current.route = route;
  }

  /** Ends a route, and unloads the canary once it has no attempt any more. */
  async unite(instance: string, canary: string, route: CanaryRoute): Promise<void> {
    const current = this.functions.get(instance);
    await route.end();
    if (current?.route === route) current.route = undefined;
    this.unload(canary);
  }

  /** Removes an instance. Running attempts may finish. */
  unload(instance: string): void {
    const gone = this.functions.get(instance);
    if (!gone) return;
    this.functions.delete(instance);
    gone.unload();
    for (const one of this.unloaded) if (one.size === 0) this.unloaded.delete(one);
    if (gone.size > 0) this.unloaded.add(gone);
  }

  /**
   * Reports that a function is charged with an executor's death. If it is proven, other suspects of the same deaths are cleared.
   */
  killed(killer: HostedFunction, isProven: boolean): void {
    this.options.observer?.functionKilled?.(killer.functionName);
    if (!isProven) return;
    for (const other of this.functions.values()) if (other !== killer) other.clear(killer.cases);
  }

  /** Returns an instance's state, or `undefined` if it is not loaded. */
  status(instance: string): HostedState | undefined {
    return this.functions.get(instance)?.state;
  }

  /** Returns the parked functions with the remaining seconds; the maximum if a function has several instances. */
  parked(): readonly { readonly name: string; readonly seconds: number }[] {
    const left = new Map<string, number>();
    for (const { functionName, parkedMs } of this.functions.values()) {
      if (parkedMs > 0) left.set(functionName, Math.max(left.get(functionName) ?? 0, parkedMs / 1000));
    }
    return [...left].map(([name, seconds]) => ({ name, seconds }));
  }

  /** Returns each executor's process, for metrics. */
  async executors(): Promise<readonly { readonly pid: number | undefined; readonly peakMemory: number }[]> {
    return (await this.pool)?.executors.map(({ pid, peakMemory }) => ({ pid, peakMemory })) ?? [];
  }

  /** Waits up to `graceMs` for running attempts, then ends every executor. Attempts that still run are interrupted. */
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
    // The oldest records are removed first.
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
