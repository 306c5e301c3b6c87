import type { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Delivery, DeliveryListener, Look, Outcome, Runner } from "../../runtime/engine/delivery/delivery.ts";
import type { EngineLog, EngineObserver, EventOutcome } from "../../runtime/engine/delivery/observer.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { FunctionDispatch } from "../../runtime/engine/function-dispatch.ts";
import type { Subscription } from "../../runtime/engine/intake/subscription.ts";
import type { Shard } from "../../runtime/engine/state/sharding.ts";
import type { FairScheduler } from "../../runtime/engine/work/fair-scheduler.ts";
import type { ListReason } from "../../runtime/informer/fanout/subscriber.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import type {
  ChangeType,
  FunctionManifest,
  DeliverySettings as Policy,
  Trigger,
} from "../../runtime/manifest/function.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";
import { ModelExecutor } from "./model-executor.ts";

/** Lets the event loop turn until no new attempt has started for a few turns. */
export async function quiet(runner: ScriptedRunner): Promise<void> {
  for (let still = 0, seen = -1; still < 8; still = seen === runner.deliveries.length ? still + 1 : 0) {
    seen = runner.deliveries.length;
    await settle();
  }
}

export const failure = (message = "no", retryAfterMs?: number): Outcome => ({
  type: "failed",
  durationMs: 1,
  ...(retryAfterMs !== undefined && { retryAfterMs }),
  error: { name: "Error", message, stack: "" },
});

/** Delivery settings with which a failed event is retried in an hour, and at once by the next process. */
export const inAnHour = {
  retry: { maxAttempts: 10, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000, factor: 1 },
};

export const done: Outcome = { type: "ok", durationMs: 1 };

/** A runner whose attempts the test ends by hand, or at once by `answer`. It starts them as the sandbox does. */
export class ScriptedRunner implements Runner {
  /** Number of concurrent attempts; the fixture sets it to the manifest's. */
  concurrency = 4;
  /** Every attempt, in the order of their start. */
  readonly deliveries: Delivery[] = [];
  /** Attempts that have not ended, by object name. */
  readonly open = new Map<string, (outcome: Outcome) => void>();
  /** Outcome of an attempt; undefined leaves the attempt open. */
  answer: (delivery: Delivery) => Outcome | Promise<Outcome> | undefined = () => done;

  private executor = this.fresh();

  give(delivery: Delivery, listener: DeliveryListener): void {
    this.executor.give(delivery, listener);
  }

  recall(functionName: string): void {
    this.executor.recall(functionName);
  }

  /** Drops running and waiting deliveries, as when their process ends. */
  forget(): void {
    this.open.clear();
    this.executor = this.fresh();
  }

  private fresh(): ModelExecutor {
    return new ModelExecutor(
      () => this.concurrency,
      (delivery) => this.handle(delivery),
    );
  }

  private handle(delivery: Delivery): Promise<Outcome> {
    this.deliveries.push(delivery);
    const outcome = this.answer(delivery);
    if (outcome) return Promise.resolve(outcome);
    return new Promise((resolve) => {
      this.open.set(delivery.object.name, resolve);
    });
  }

  /** Ends the open attempt at the object of this name. */
  async end(name: string, outcome: Outcome = done): Promise<void> {
    const resolve = this.open.get(name);
    if (!resolve) throw new Error(`nothing runs for ${name}`);
    this.open.delete(name);
    resolve(outcome);
    await quiet(this);
  }

  /** The attempts in short: `Type name@resourceVersion`, with `#attempt` after the first and `!` if flagged. */
  get told(): string[] {
    return this.deliveries.map((it) => {
      const attempt = it.attempt > 1 ? ` #${it.attempt}` : "";
      return `${it.type} ${it.object.name}@${it.resourceVersion}${attempt}${it.redelivered ? " !" : ""}`;
    });
  }
}

export const trigger = (over: Partial<Trigger> = {}): Trigger => ({
  name: "settings",
  apiVersion: "v1",
  kind: "ConfigMap",
  namespaces: { type: "all" },
  labelSelector: "",
  fieldSelector: "",
  events: ["Added", "Modified", "Deleted"],
  initialEvents: "Deliver",
  changedFields: [],
  matchConditions: [],
  object: "Full",
  lastBody: "Full",
  ...over,
});

export const manifest = (
  policy: Partial<Policy> = {},
  triggers: readonly Trigger[] = [trigger()],
): FunctionManifest => ({
  name: "copy",
  file: "functions/copy/function.yaml",
  handler: "/functions/copy/handler.ts",
  triggers,
  schedules: [],
  reads: [],
  cacheBytes: 64 << 20,
  stateBytes: 64 * 1024,
  permissions: [],
  delivery: {
    concurrency: 4,
    mode: "All",
    timeoutMs: 30_000,
    retry: { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 60_000, factor: 2 },
    onFailure: "DeadLetter",
    deadLetters: { maxCount: 1_000, maxBytes: 64 << 20 },
    ...policy,
  },
  resources: { memoryBytes: 64 << 20, cpuPerEventMs: 500 },
  isolation: "Handler",
  egress: [],
  env: [],
});

/** A change of an object. Default uid: the object's name. */
export function change(
  type: ChangeType,
  name: string,
  rv: number | string,
  over: { uid?: string; spec?: unknown; namespace?: string } = {},
): Change {
  const { uid = `uid-${name}`, spec = { rv }, namespace = "team-a" } = over;
  const meta = { namespace, name, uid, resourceVersion: resourceVersion(String(rv)) };
  const body = Buffer.from(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: meta, spec }));
  return { type, meta, body, receivedAt: 0 };
}

/** Collects only the warnings of a log. */
const warningsTo = (warnings: Record<string, unknown>[]): EngineLog => ({
  info: () => {},
  warn: (fields, msg) => warnings.push({ ...fields, msg }),
  error: () => {},
});

export interface DispatchOptions {
  readonly disk?: MemoryDisk;
  readonly store?: Checkpoint;
  readonly manifest?: FunctionManifest;
  readonly usesOldObject?: boolean;
  readonly shard?: Shard;
  readonly clock?: VirtualClock;
  readonly runner?: ScriptedRunner;
  readonly selection?: string;
  readonly namespace?: string;
  readonly memoryBudget?: number;
  readonly look?: Look;
  readonly scheduler?: FairScheduler;
  /** Called before the function is loaded. */
  readonly opened?: (parts: Pick<DispatchFixture, "store" | "dispatcher" | "clock">) => Promise<unknown>;
  readonly onLost?: (error: WatchfireError) => void;
}

/** A dispatcher with one function and one subscription, on a virtual clock. */
export class DispatchFixture {
  readonly clock: VirtualClock;
  readonly runner: ScriptedRunner;
  readonly store: Checkpoint;
  readonly disk: MemoryDisk;
  readonly dispatcher: Dispatcher;
  readonly function: FunctionDispatch;
  readonly subscription: Subscription;
  readonly outcomes: Map<EventOutcome, number>;
  /** Logged warnings, with the text in `msg`. */
  readonly warnings: readonly Record<string, unknown>[];

  private constructor(it: Omit<DispatchFixture, "restart" | "list" | "listed" | "kill" | "drain">) {
    this.clock = it.clock;
    this.runner = it.runner;
    this.store = it.store;
    this.disk = it.disk;
    this.dispatcher = it.dispatcher;
    this.function = it.function;
    this.subscription = it.subscription;
    this.outcomes = it.outcomes;
    this.warnings = it.warnings;
  }

  static async open(options: DispatchOptions = {}): Promise<DispatchFixture> {
    const { clock = new VirtualClock(), runner = new ScriptedRunner(), disk = new MemoryDisk() } = options;
    const store = options.store ?? new MemoryStore(disk);
    runner.concurrency = (options.manifest ?? manifest()).delivery.concurrency;
    const outcomes = new Map<EventOutcome, number>();
    const observer: EngineObserver = {
      event: (_function, _trigger, _type, outcome, count = 1) =>
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count),
    };
    const { memoryBudget, onLost = () => {} } = options;
    const warnings: Record<string, unknown>[] = [];
    const parts = { store, runner, clock, random: () => 0, observer, log: warningsTo(warnings), onLost };
    const dispatcher = await Dispatcher.open({
      ...parts,
      ...(memoryBudget !== undefined && { memoryBudget }),
      ...(options.look && { look: options.look }),
      ...(options.scheduler && { scheduler: options.scheduler }),
    });
    await options.opened?.({ store, dispatcher, clock });
    const loaded = await dispatcher.function(options.manifest ?? manifest(), {
      usesOldObject: options.usesOldObject ?? false,
      shard: options.shard,
    });
    const { selection = "all", namespace = "" } = options;
    const subscription = loaded.subscription("settings", { selection, namespace });
    await settle();
    return new DispatchFixture({
      clock,
      runner,
      store,
      disk,
      dispatcher,
      function: loaded,
      subscription,
      outcomes,
      warnings,
    });
  }

  /** Sends the subscription a complete list. */
  async list(at: number, changes: readonly Change[], reason: ListReason = "relist") {
    const receiver = this.subscription.list(reason, undefined);
    for (const item of changes) receiver.item(item);
    const verdict = receiver.end(resourceVersion(String(at)));
    await settle();
    return verdict;
  }

  /** Sends an empty first list, after which live changes can follow. */
  async listed(resourceVersion = 1): Promise<this> {
    await this.list(resourceVersion, [], "initial");
    return this;
  }

  /** Ends the process without draining, and starts another one on the same disk with the same runner's record. */
  async restart(options: DispatchOptions = {}): Promise<DispatchFixture> {
    this.kill();
    await settle();
    this.runner.forget();
    return DispatchFixture.open({ clock: this.clock, runner: this.runner, disk: this.disk, ...options });
  }

  kill(): void {
    this.dispatcher.halt();
  }

  async drain(): Promise<boolean> {
    const drained = this.dispatcher.drain(1_000);
    await settle();
    await this.clock.advance(1_000);
    return drained;
  }
}
