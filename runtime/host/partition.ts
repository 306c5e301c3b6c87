import type { FunctionAccounts } from "../access/function-accounts.ts";
import { pause } from "../base/clock.ts";
import { asWatchfireError, type WatchfireError } from "../base/errors.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { lookAt } from "../control/explain/live-look.ts";
import { Pauses } from "../control/pauses.ts";
import type { Look, Runner } from "../engine/delivery/delivery.ts";
import { Dispatcher } from "../engine/dispatcher.ts";
import { type Sharding, shardingIn, whole } from "../engine/state/sharding.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import { DeadLetters, type LoadFault } from "../journal/dead-letters.ts";
import { loggedRunner } from "../observe/run-log.ts";
import { GrantWatch } from "../rbac/grant-watch.ts";
import { rememberedKinds } from "../rbac/kinds.ts";
import { FreshRunner } from "../reads/fresh-runner.ts";
import type { HeldSlot } from "../slots/held-slot.ts";
import type { SlotWork } from "../slots/slot-owner.ts";
import { type ActiveComponents, type Components, type LeaseHold, type RuntimeOptions, sourceOf } from "./components.ts";
import { slotPrefix } from "./fleet/fleet-letters.ts";
import { LiveFunctions } from "./live-functions.ts";

/**
 * How long handlers may finish, in milliseconds. A pod's default grace period is 30 s, and the journal must be closed within it.
 */
const drainMs = 25_000;
/** How long interrupted handlers may take to end, in milliseconds. */
const interruptedMs = 1_000;

interface PartitionParts {
  readonly options: RuntimeOptions;
  readonly components: Components;
  /** The slot. `undefined`: the partition has all functions. */
  readonly held?: HeldSlot | undefined;
  /** Creates the source of its functions. `recorded`: returns how a function's checkpoints here are spread. */
  readonly source: (recorded: (name: string) => Promise<Sharding | undefined>) => FunctionSource;
  /** Returns why the checkpoints cannot be read at present, if that is so. */
  readonly damage?: () => WatchfireError | undefined;
  /** Called if the partition cannot be run. Ends the host. */
  readonly onLost: (error: WatchfireError) => void;
  /** Called when another replica has taken the slot. */
  readonly over?: (partition: Partition) => void;
}

/** An engine and its journal, with the functions that it runs: all of them, or those of one slot. */
export class Partition implements SlotWork {
  readonly held: HeldSlot | undefined;
  readonly live: LiveFunctions;
  /** Describes why its checkpoints cannot be opened yet. Written here only. */
  delay: string | undefined;
  private readonly parts: PartitionParts;
  private readonly hold: LeaseHold | undefined;
  private readonly stopping = new AbortController();
  private opening: Promise<void> = Promise.resolve();
  /** Resolves once its checkpoints are open or known to be damaged, or the partition ends. */
  private readonly tried = Promise.withResolvers<void>();
  private opened: ActiveComponents | undefined;

  constructor(parts: PartitionParts) {
    this.parts = parts;
    this.held = parts.held;
    this.hold = parts.held ?? parts.components.elector;
    const source = parts.source((name) => this.recorded(name));
    this.live = new LiveFunctions({ ...parts.options, source, active: () => this.opened });
  }

  /** `undefined` until its journal is open. */
  get active(): ActiveComponents | undefined {
    return this.opened;
  }

  /** True if it may continue, because no other replica can have it. */
  get holds(): boolean {
    return this.hold?.holds ?? true;
  }

  /** True once it is ending. */
  get isEnding(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Resolves once its opening has ended. */
  get ended(): Promise<void> {
    return this.opening;
  }

  /** Why it does not run: its checkpoints cannot be read. */
  get damage(): WatchfireError | undefined {
    return this.parts.damage?.();
  }

  /**
   * Opens it with `open`, until it ends or `until` aborts. A failure ends the host. Never rejects.
   * @param open calls `damaged` if it finds the checkpoints damaged, and continues; and `waiting` with the reason why it waits,
   * or `undefined` when the wait ends
   */
  begin(
    open: (
      signal: AbortSignal,
      opening: { readonly damaged: () => void; readonly waiting: (why: string | undefined) => void },
    ) => Promise<void>,
    until?: AbortSignal,
  ): Promise<void> {
    const signal = AbortSignal.any([this.stopping.signal, ...(until ? [until] : [])]);
    const waiting = (why: string | undefined) => {
      this.delay = why;
    };
    this.opening = open(signal, { damaged: this.tried.resolve, waiting })
      .catch((error: unknown) => {
        if (!signal.aborted) this.parts.onLost(asWatchfireError(error));
      })
      .finally(this.tried.resolve);
    return this.opening;
  }

  /**
   * Starts the engine on this journal. `cluster`: the cluster that the journal must belong to. Closes a journal that it cannot
   * use.
   */
  async open(store: Checkpoint, cluster?: string): Promise<void> {
    const { onLost } = this.parts;
    const { held, stopping } = this;
    const lost = (error: WatchfireError) => {
      if (!held || !stopping.signal.aborted) onLost(error);
    };
    try {
      if (held) stopping.signal.throwIfAborted();
      if (cluster !== undefined) await claimCluster(store, cluster);
      this.opened = await this.activate(store, lost);
    } catch (error) {
      await store.close(false);
      throw error;
    }
  }

  /** Reads its source again. Damaged checkpoints delay this until they are open. */
  async reload(): Promise<void> {
    await this.tried.promise;
    if (!this.opened) return;
    // It may be reading its functions for the first time, and an older read must not follow a newer one.
    await this.opening;
    await this.live.read(this.stopping.signal);
  }

  /** Starts nothing more. */
  freeze(): void {
    this.stopping.abort();
    this.live.freeze();
  }

  /** Starts and writes nothing more, as a killed process. */
  halt(): void {
    this.freeze();
    this.opened?.dispatcher.halt();
  }

  /** Lets handlers finish for at most 25 s, and saves. Returns whether its journal may be closed as clean. */
  async drain(): Promise<boolean | undefined> {
    this.freeze();
    await this.opening;
    return this.opened?.dispatcher.drain(drainMs);
  }

  /**
   * As `drain`, for a process that continues with other partitions: also releases informers and isolates, and closes the journal.
   * Never rejects.
   */
  async end(): Promise<void> {
    this.freeze();
    await this.opening;
    const { opened, live, parts } = this;
    if (!opened) return;
    const { clock, log } = parts.options;
    const stopped = Promise.all(live.all.map((each) => each.stop({ retire: false })));
    const within = (ms: number) => Promise.race([stopped.then(() => true), pause(clock, ms).then(() => false)]);
    const inTime = await within(drainMs);
    if (!inTime) {
      await Promise.all(live.all.map(({ instance }) => opened.sandbox.unload(instance)));
      await within(interruptedMs);
    }
    const clean = (await opened.dispatcher.drain(0)) && inTime;
    await opened.leave();
    await opened.store.close(clean).catch((error: unknown) => {
      log.warn({ slot: this.held?.slot, error: String(error) }, "slot not closed as clean");
    });
  }

  over(): void {
    this.parts.over?.(this);
  }

  /** Creates the components that only one replica may have. `onLost`: called when another runtime has taken the journal over. */
  private async activate(store: Checkpoint, onLost: (error: WatchfireError) => void): Promise<ActiveComponents> {
    const { options, components } = this.parts;
    const { hold, held } = this;
    const letterPrefix = held ? slotPrefix(held.slot) : "";
    const { clock, random, log } = options;
    const { metrics, redactor, recorder, sandbox, reads, history, tracer } = components;
    // The Lease may be lost while an attempt waits for its reads.
    const instances = held ? sandbox.instances((name) => this.live.get(name)?.instance ?? name) : sandbox;
    const handlers = hold ? runnerWhileHeld(instances, hold) : instances;
    const fresh = new FreshRunner(recorder.listening(handlers), reads, clock);
    const kept = history && { collector: history.runs, clock };
    const isSelective = (name: string, trigger: string) => {
      const found = this.live.get(name)?.manifest.triggers.find((each) => each.name === trigger);
      return found !== undefined && (found.labelSelector !== "" || found.fieldSelector !== "");
    };
    const successLevel = options.successLevel ?? "debug";
    const logged = loggedRunner(fresh, log, redactor, successLevel, kept, tracer?.traceOf, isSelective);
    const runner = tracer ? tracer.traced(logged) : logged;
    history?.begin();
    const dispatcher = await Dispatcher.open({
      store,
      runner: hold ? runnerWhileHeld(runner, hold) : runner,
      clock,
      random,
      log,
      observer: metrics.dispatch,
      onLost,
      letterPrefix,
      letterCommand: options.letterCommand,
      look: newestState(components, options),
      ...(hold && { permitted: () => hold.holds }),
      ...(options.memory && { memory: options.memory }),
      ...(options.bodyRoom && { bodyRoom: options.bodyRoom }),
      scheduler: components.scheduler,
    });
    const pauses = await Pauses.open({ store, dispatcher, clock });
    const grants = options.accounts && grantWatchFor(options.accounts, components, dispatcher, options, this.live);
    const suspect = (name: string) => grants?.suspect(name);
    components.refusals.add(suspect);
    const leave = async () => {
      fresh.close();
      pauses.close();
      components.refusals.delete(suspect);
      await grants?.close();
    };
    const deadLetters = new DeadLetters(store, dispatcher, letterPrefix, (name) => this.loadFault(name));
    return { ...components, store, dispatcher, deadLetters, pauses, grants, leave };
  }

  /** Returns why a function of this partition is not loaded, without the values of its Secrets. */
  private loadFault(name: string): LoadFault | undefined {
    const { live, parts } = this;
    const state = live.get(name)?.state;
    const refused = live.rejected.find((each) => each.name === name)?.faults[0];
    const fault = state && "fault" in state ? state.fault : refused;
    if (!fault) return state && { message: "it is being loaded" };
    return { code: fault.code, message: parts.components.redactor.redact(name, fault.message) };
  }

  /** Returns how a function's checkpoints here are spread. `undefined` without checkpoints. */
  private async recorded(name: string): Promise<Sharding | undefined> {
    const store = this.opened?.store;
    if (!store) return undefined;
    const retired = (await store.retiredViews()).filter((view) => view.function === name);
    const views = [...(await store.views(name)), ...retired];
    const selections = views.flatMap(({ cursors }) => cursors.flatMap(({ selection }) => selection || []));
    const shardings = selections.flatMap((selection) => shardingIn(selection) ?? []);
    // The selection of a shard without any namespace does not show the sharding.
    return shardings[0] ?? (selections.length > 0 ? whole : undefined);
  }
}

/** Holds a function's events while its account lacks a required right, because every attempt would fail. */
function grantWatchFor(
  accounts: FunctionAccounts,
  { manifests, discovery }: Pick<Components, "manifests" | "discovery">,
  dispatcher: Dispatcher,
  { transport, clock, log }: Pick<RuntimeOptions, "transport" | "clock" | "log">,
  live: Pick<LiveFunctions, "get">,
): GrantWatch {
  const changed = (name: string, fault: WatchfireError | undefined) => {
    if (fault) log.warn({ function: name, error: fault.message }, "function is forbidden, its events wait");
    else log.info({ function: name }, "function is no longer forbidden");
    dispatcher[fault ? "hold" : "release"](name, "forbidden");
  };
  const excluded = (name: string, fault: WatchfireError) => {
    log.warn({ function: name, error: fault.message }, "function is forbidden, its watches end");
    // No attempt begins while those under way end.
    dispatcher.hold(name, "forbidden");
    void live
      .get(name)
      ?.restart()
      .finally(() => dispatcher.release(name, "forbidden"));
  };
  const absent = (name: string, namespaces: readonly string[]) => {
    if (namespaces.length === 0) log.info({ function: name }, "no function has rights in a removed namespace any more");
    else
      log.warn(
        { function: name, namespaces },
        "namespaces of a function are deleted or being deleted, it continues in the others",
      );
  };
  // Functions of other partitions are theirs to check.
  const functions = {
    keys: () => [...manifests.keys()].filter((name) => dispatcher.loaded(name)).values(),
    get: (name: string) => (dispatcher.loaded(name) ? manifests.get(name) : undefined),
  };
  const kinds = rememberedKinds(discovery);
  return new GrantWatch({ transport, accounts, functions, kinds, clock, changed, excluded, absent });
}

/** Reads an object from the API server as its trigger's informer would return it, with the rights of the watches. */
const newestState =
  ({ manifests, discovery, own }: Components, { transport, clock }: RuntimeOptions): Look =>
  async (functionName, triggerName, { namespace, name }) => {
    const trigger = manifests.get(functionName)?.triggers.find((each) => each.name === triggerName);
    if (!trigger) throw new Error(`function ${functionName} has no trigger ${triggerName}`);
    const found = await lookAt({ spec: sourceOf(trigger, namespace, own), name }, { transport, discovery, clock });
    if (found.type === "gone") return undefined;
    if (found.type !== "there") throw new Error(found.why);
    const { meta, body } = found.change;
    // An object that the selectors exclude by now is not the function's.
    return found.labels && found.fields ? { ...meta, body } : undefined;
  };

/** Begins attempts only while the Lease is held. A process that was suspended while its Lease was taken notices here first. */
const runnerWhileHeld = (runner: Runner, hold: LeaseHold): Runner => ({
  give: (delivery, listener) => {
    if (hold.holds) runner.give(delivery, listener);
    else queueMicrotask(() => listener.ended({ type: "interrupted" }));
  },
  recall: (functionName) => runner.recall(functionName),
});
