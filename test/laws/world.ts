import type { Delivery, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { FunctionDispatch } from "../../runtime/engine/function-dispatch.ts";
import type { Shard } from "../../runtime/engine/state/sharding.ts";
import type { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { manifest, trigger } from "../engine/fixture.ts";
import { ModelExecutor } from "../engine/model-executor.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { CrashingStore } from "./crashing-store.ts";
import { changeOf, History, namespace } from "./history.ts";
import { Laws } from "./laws.ts";
import { Dice } from "./random.ts";
import { SimulatedSource } from "./simulated-source.ts";

const names = ["a", "b", "c", "d", "e"];
const silent = { info: () => {}, warn: () => {}, error: () => {} };

/** How a seed's world is set up. */
export interface Setting {
  readonly mode: "All" | "Latest";
  readonly onFailure: "DeadLetter" | "Block" | "Drop";
  readonly initialEvents: "Deliver" | "Skip";
  readonly changedFields: readonly (readonly string[])[];
  readonly concurrency: number;
  /**
   * True if a label selector is set, so that objects may enter and leave the selection without being created or deleted.
   */
  readonly selective: boolean;
  readonly memoryEvents: number;
  readonly memoryBytes: number;
  /**
   * Limit in bytes of the events that may wait on disk; and whether queues may wait there, or only events that hold a checkpoint
   * back.
   */
  readonly spillLimit: number;
  readonly holdsQueues: boolean;
  readonly compactions: boolean;
  readonly crashes: boolean;
  /** Share of the changes that affect the first object. Default: the same as for the others. */
  readonly hot?: number;
  /** True if handlers ask for repetition of events. */
  readonly requeues: boolean;
  /**
   * The function is paused and resumed, its code is replaced, and people ask for objects to be redelivered and dead letters
   * replayed.
   */
  readonly errands: boolean;
}

export const settingOf = (dice: Dice): Setting => ({
  mode: dice.chance(0.2) ? "Latest" : "All",
  onFailure: dice.pick(["DeadLetter", "DeadLetter", "Block", "Drop"]),
  initialEvents: dice.chance(0.3) ? "Skip" : "Deliver",
  changedFields: dice.chance(0.25) ? [["spec", "a"]] : [],
  concurrency: 1 + dice.below(4),
  memoryEvents: dice.pick([2, 4, 1000]),
  compactions: dice.chance(0.5),
  crashes: dice.chance(0.8),
  selective: dice.chance(0.3),
  memoryBytes: dice.pick([300, 1 << 20]),
  requeues: false,
  errands: false,
  ...dice.pick([
    { spillLimit: Number.POSITIVE_INFINITY, holdsQueues: true },
    { spillLimit: 8_000, holdsQueues: true },
    { spillLimit: 2_000, holdsQueues: true },
    { spillLimit: Number.POSITIVE_INFINITY, holdsQueues: false },
    { spillLimit: 2_000, holdsQueues: false },
  ]),
});

/** A store whose process may end at any moment. */
export type WorldStore = Checkpoint & { readonly disk: MemoryDisk; dead: boolean };

/** The store of a world, and the clock that it runs on. */
export interface WorldPlace {
  readonly clock: VirtualClock;
  /** Adapts the setting to the store. */
  setting(setting: Setting): Setting;
  /** Opens the store for a new process. @param committed called after each commit */
  open(dice: Dice, setting: Setting, committed: () => void): Promise<WorldStore>;
}

const inMemory = (): WorldPlace => {
  const disk = new MemoryDisk();
  return {
    clock: new VirtualClock(),
    setting: (setting) => setting,
    open: async (dice, setting, committed) => new CrashingStore(disk, dice, setting, committed),
  };
};

/** Runs a world in which one object changes far more often than the others, with little room for waiting events. */
export function runHotWorld(seed: number): ReturnType<typeof runWorld> {
  const dice = new Dice(-seed);
  return runWorld(seed, inMemory(), undefined, {
    mode: "All",
    hot: 0.7 + 0.3 * dice.next(),
    memoryEvents: dice.pick([4, 8, 16]),
    spillLimit: dice.pick([2_000, 4_000, Number.POSITIVE_INFINITY]),
    holdsQueues: false,
    requeues: dice.chance(0.5),
  });
}

/**
 * Runs a world of one shard of a function. The shard receives all changes of the objects it owns, by the same laws, and no
 * others.
 */
export function runShardWorld(seed: number): ReturnType<typeof runWorld> {
  const number = seed % 3;
  const owns = (key: string) => key.charCodeAt(key.length - 1) % 3 === number;
  return runWorld(seed, inMemory(), {
    number,
    sharding: "3 by key",
    isFirst: number === 0,
    owns,
    mayOwnIn: () => true,
  });
}

/**
 * Runs a world in which handlers and people ask for repetition of events, and the function is paused, released and reloaded.
 */
export function runAskingWorld(seed: number, place: WorldPlace = inMemory()): ReturnType<typeof runWorld> {
  const dice = new Dice(-seed);
  return runWorld(seed, place, undefined, { requeues: dice.chance(0.7), errands: dice.chance(0.5) });
}

/** Runs a seed's world from its first change until it is quiet. Returns the laws that were broken. */
export async function runWorld(
  seed: number,
  place: WorldPlace = inMemory(),
  shard?: Shard,
  beside: Partial<Setting> = {},
): Promise<{ broken: readonly string[]; deliveries: number; collapsed: number }> {
  const dice = new Dice(seed);
  const setting = place.setting({ ...settingOf(dice), ...beside });
  const world = new World(setting, dice, place, shard);
  await world.live(40 + dice.below(80));
  const { broken, deliveries, collapsed } = world.laws;
  return { broken, deliveries: deliveries.length, collapsed };
}

class World {
  readonly laws: Laws;
  private readonly setting: Setting;
  private readonly dice: Dice;
  private readonly clock: VirtualClock;
  private readonly place: WorldPlace;
  private readonly history = new History();
  private process!: { dispatcher: Dispatcher; store: WorldStore; source: SimulatedSource; loaded: FunctionDispatch };
  private isHeld = false;
  private executor!: ModelExecutor;
  /** Number of the process. Handlers of an earlier process have no effect any more. */
  private incarnation = 0;
  private calm = false;

  private readonly shard: Shard | undefined;

  constructor(setting: Setting, dice: Dice, place: WorldPlace, shard: Shard | undefined) {
    this.shard = shard;
    this.setting = setting;
    this.dice = dice;
    this.place = place;
    this.clock = place.clock;
    const own = shard ? this.history.part((name) => shard.owns(`${namespace}/${name}`)) : this.history;
    this.laws = new Laws(own, new MemoryDisk(), setting);
  }

  async live(steps: number): Promise<void> {
    const { dice, history, setting } = this;
    for (let changes = dice.below(6); changes > 0; changes--) this.change();
    await this.start(await this.open());
    for (let step = 0; step < steps; step++) {
      if (dice.chance(0.5)) this.change();
      if (setting.hot) for (let more = dice.below(4); more > 0; more--) this.change();
      if (setting.compactions && dice.chance(0.05)) history.compacted = history.now;
      if (setting.crashes && dice.chance(0.04)) await this.crash();
      else if (dice.chance(0.02)) await this.restart();
      else if (dice.chance(0.03)) await this.reload();
      if (setting.errands && dice.chance(0.1)) this.holdOrRelease();
      if (setting.errands && dice.chance(0.03)) await this.replace();
      if (setting.errands && dice.chance(0.05)) this.tellAgain();
      if (setting.errands && dice.chance(0.05)) await this.replay();
      this.process.source.step();
      if (dice.chance(0.4)) await this.clock.quiet();
      if (dice.chance(0.4)) await this.clock.advance(dice.pick([0, 1, 30, 300, 5_000, 70_000]));
    }
    await this.settleDown();
    this.process.dispatcher.halt();
  }

  private change(): void {
    const { dice, history, setting } = this;
    history.change(dice, setting.hot && dice.chance(setting.hot) ? names.slice(0, 1) : names);
  }

  run(delivery: Delivery): Promise<Outcome> {
    const { dice, laws } = this;
    const process = this.incarnation;
    laws.begins(delivery);
    const outcome = this.calm ? ok : this.outcome();
    return new Promise((resolve) => {
      const end = () => {
        if (process !== this.incarnation) return;
        laws.ends(delivery, outcome);
        resolve(outcome);
        // The executor may have died, with the deliveries that waited in it.
        if (outcome.type === "interrupted" && dice.chance(0.5)) laws.lost(this.executor.interrupt("copy"));
      };
      if (this.calm || dice.chance(0.5)) end();
      else this.clock.after(dice.pick([1, 100, 6_000, 80_000]), end);
    });
  }

  private outcome(): Outcome {
    const { dice } = this;
    const error = { name: "Error", message: "no", stack: "" };
    if (dice.chance(0.7)) {
      const comesAgain = this.setting.requeues && dice.chance(0.3);
      return comesAgain ? requeue(dice.pick([0, 500, 20_000, 90_000])) : ok;
    }
    if (dice.chance(0.5)) return { type: "failed", durationMs: 1, error };
    if (dice.chance(0.3)) return { type: "permanent", durationMs: 1, error };
    if (dice.chance(0.5)) return { type: "failed", durationMs: 1, error, retryAfterMs: dice.below(20_000) };
    return { type: "interrupted" };
  }

  private async open(): Promise<WorldStore> {
    const store = await this.place.open(this.dice, this.setting, () => this.laws.checkDisk());
    this.laws.disk = store.disk;
    return store;
  }

  private async start(store: WorldStore): Promise<void> {
    const { clock, dice, setting } = this;
    this.executor = new ModelExecutor(
      () => setting.concurrency,
      (delivery) => this.run(delivery),
    );
    const memoryLimit = { events: setting.memoryEvents, bytes: setting.memoryBytes };
    const random = dice.next;
    const dispatcher = await Dispatcher.open({
      store,
      runner: this.executor,
      clock,
      random,
      observer: {},
      log: silent,
      memoryLimit,
    });
    await this.load(dispatcher, store);
  }

  /** @param begins called before anything is begun again */
  private async load(dispatcher: Dispatcher, store: WorldStore, begins = () => {}): Promise<void> {
    const { dice, laws, setting } = this;
    const { initialEvents, changedFields, mode, onFailure, concurrency, selective } = setting;
    const labelSelector = selective ? "sync=true" : "";
    const loaded = await dispatcher.function(
      manifest({ mode, onFailure, concurrency }, [trigger({ initialEvents, changedFields, labelSelector })]),
      { usesOldObject: dice.chance(0.3), shard: this.shard },
    );
    begins();
    const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
    const source = new SimulatedSource(this.history, subscription, dice, () => laws.gap());
    this.process = { dispatcher, store, source, loaded };
    this.isHeld = false;
  }

  /** Ends the process without draining. */
  private async crash(): Promise<void> {
    this.incarnation++;
    this.process.store.dead = true;
    this.process.dispatcher.halt();
    await this.clock.quiet();
    const store = await this.open();
    this.laws.processEnded();
    await this.start(store);
  }

  /** Drains the process. */
  private async restart(): Promise<void> {
    await this.patiently(this.process.dispatcher.drain(10_000));
    this.incarnation++;
    this.process.store.dead = true;
    const store = await this.open();
    this.laws.processEnded();
    await this.start(store);
  }

  /**
   * Reloads the function in the running process, because its triggers changed, or because it was removed and put back.
   */
  private async reload(): Promise<void> {
    const { dispatcher, store } = this.process;
    await this.patiently(dispatcher.remove("copy", { retire: this.dice.chance(0.3) }));
    await this.patiently(this.load(dispatcher, store, () => this.laws.processEnded()));
  }

  private holdOrRelease(): void {
    const { loaded } = this.process;
    if (this.isHeld) loaded.release();
    else loaded.hold();
    this.isHeld = !this.isHeld;
  }

  /** Replaces the function's code while the process runs. */
  private async replace(): Promise<void> {
    const { mode, onFailure, concurrency } = this.setting;
    const usesOldObject = this.dice.chance(0.3);
    const { loaded } = this.process;
    await this.patiently(loaded.replace(manifest({ mode, onFailure, concurrency }), usesOldObject, async () => {}));
  }

  /** Simulates a person who asks for the present state of an object to be delivered again. */
  private tellAgain(): void {
    const { dice, history, laws, process } = this;
    const state = history.at(history.now).get(dice.pick(names));
    if (!state) return;
    if (process.loaded.redeliver("settings", changeOf({ ...state, type: "Added" })) === "queued") laws.toldAgain(state);
  }

  /** Simulates a person who replays a dead letter. */
  private async replay(): Promise<void> {
    const { dice, laws } = this;
    const { loaded, store } = this.process;
    const letters = await store.deadLetters();
    if (letters.length === 0) return;
    const letter = await store.deadLetter(dice.pick(letters).letter);
    if (!letter) return;
    laws.replayed(letter.id);
    await this.patiently(loaded.replay(letter));
  }

  /** Advances time until the work is done: failed commits are repeated, and running handlers end. */
  private async patiently(work: Promise<unknown>): Promise<void> {
    let open = true;
    void work.then(() => {
      open = false;
    });
    while (open) await this.clock.advance(10_000);
  }

  /** Ends all faults, and lets everything be received and handled. */
  private async settleDown(): Promise<void> {
    this.calm = true;
    if (this.isHeld) this.holdOrRelease();
    for (let round = 0; round < 200; round++) {
      const took = this.process.source.catchUp();
      await this.clock.advance(70_000);
      const [status] = this.process.dispatcher.status();
      if (took && status && status.queued + status.inFlight + status.spilled === 0) break;
    }
    this.process.source.catchUp();
    await this.clock.advance(60_000);
    this.laws.checkEnd();
  }
}

const ok: Outcome = { type: "ok", durationMs: 1 };
const requeue = (requeueAfterMs: number): Outcome => ({ type: "ok", durationMs: 1, requeueAfterMs });
