import type { Delivery, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { FunctionDispatch } from "../../runtime/engine/function-dispatch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { manifest, trigger } from "../engine/fixture.ts";
import { ModelExecutor } from "../engine/model-executor.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";
import { BranchingHistory, changeOf, keyOf } from "./branching-history.ts";
import { CrashingStore, roomy } from "./crashing-store.ts";
import { NamespaceSource } from "./namespace-source.ts";
import { Dice } from "./random.ts";

const namespaces = ["red", "green", "blue"];
const names = ["a", "b", "c"];
const silent = { info: () => {}, warn: () => {}, error: () => {} };
const even = { name: "even", expression: "object.spec.a % 2 == 0" };

interface Process {
  readonly dispatcher: Dispatcher;
  readonly function: FunctionDispatch;
  readonly store: CrashingStore;
  readonly sources: Map<string, NamespaceSource>;
}

/**
 * Runs a seed's world of namespaces that are added and removed, restored backups and conditions. Returns the laws that were
 * broken.
 */
export async function runScopedWorld(seed: number): Promise<{ broken: readonly string[]; deliveries: number }> {
  const world = new ScopedWorld(new Dice(seed));
  await world.live();
  return { broken: world.broken, deliveries: world.deliveries };
}

class ScopedWorld {
  readonly broken: string[] = [];
  deliveries = 0;
  private readonly dice: Dice;
  private readonly clock = new VirtualClock();
  private readonly disk = new MemoryDisk();
  private readonly history = new BranchingHistory();
  private readonly rewinds: boolean;
  private readonly conditional: boolean;
  private readonly concurrency: number;
  private readonly memoryEvents: number;
  private readonly memoryBytes: number;
  private scope: Set<string>;
  private process!: Process;
  private incarnation = 0;
  private calm = false;
  private readonly running = new Set<string>();
  /** Ids of started deliveries, and the last started attempt of each object. */
  private readonly begun = new Set<string>();
  /** By object: whether its last delivery was an Added or a Deleted. */
  private readonly passages = new Map<string, "Added" | "Deleted">();
  private readonly last = new Map<string, Delivery>();

  constructor(dice: Dice) {
    this.dice = dice;
    this.rewinds = dice.chance(0.7);
    this.conditional = dice.chance(0.4);
    this.concurrency = 1 + dice.below(4);
    this.memoryEvents = dice.pick([2, 4, 1000]);
    this.memoryBytes = dice.pick([300, 1 << 20]);
    this.scope = new Set(namespaces.filter(() => dice.chance(0.7)));
  }

  async live(): Promise<void> {
    const { dice, history } = this;
    await this.start();
    for (let steps = 40 + dice.below(80); steps > 0; steps--) {
      if (dice.chance(0.5)) history.change(dice, namespaces, names);
      if (dice.chance(0.04)) history.compacted = history.now;
      if (dice.chance(0.04)) this.rescope();
      if (dice.chance(0.04)) await this.crash();
      if (this.rewinds && dice.chance(0.03)) await this.rewind();
      for (const source of this.process.sources.values()) if (dice.chance(0.6)) source.step();
      if (dice.chance(0.4)) await settle();
      if (dice.chance(0.4)) await this.clock.advance(dice.pick([0, 1, 30, 300, 5_000, 70_000]));
    }
    await this.settleDown();
    this.checkEnd();
    this.process.dispatcher.halt();
  }

  private async start(): Promise<void> {
    const { clock, dice, disk } = this;
    const store = new CrashingStore(disk, dice, roomy, () => {});
    const runner = new ModelExecutor(
      () => this.concurrency,
      (delivery) => this.run(delivery),
    );
    const memoryLimit = { events: this.memoryEvents, bytes: this.memoryBytes };
    const parts = { store, runner, clock, random: dice.next, observer: {}, log: silent, memoryLimit };
    const dispatcher = await Dispatcher.open(parts);
    const matchConditions = this.conditional ? [even] : [];
    const scope = { type: "labels", labelSelector: "watched=true" } as const;
    const loaded = await dispatcher.function(
      manifest({ onFailure: "Block", concurrency: this.concurrency }, [
        trigger({ namespaces: scope, matchConditions }),
      ]),
      { usesOldObject: dice.chance(0.3) },
    );
    this.process = { dispatcher, function: loaded, store, sources: new Map() };
    loaded.retain("settings", [...this.scope]);
    this.enter();
  }

  /** Subscribes to the namespaces in scope. */
  private enter(): void {
    const { function: loaded, sources } = this.process;
    for (const namespace of this.scope) {
      if (sources.has(namespace)) continue;
      const subscription = loaded.subscription("settings", { selection: "all", namespace });
      sources.set(namespace, new NamespaceSource(this.history, namespace, subscription, this.dice));
    }
  }

  /** Changes a namespace's labels. */
  private rescope(): void {
    const namespace = this.dice.pick(namespaces);
    if (this.scope.delete(namespace)) {
      this.process.sources.delete(namespace);
      this.process.function.retain("settings", [...this.scope]);
    } else {
      this.scope.add(namespace);
      this.enter();
    }
  }

  private async crash(): Promise<void> {
    this.incarnation++;
    this.process.store.dead = true;
    this.process.dispatcher.halt();
    this.running.clear();
    await settle();
    await this.start();
  }

  /**
   * Puts the cluster's resourceVersions back. Nothing is written until all sources have noticed and recorded it, because once the
   * cluster has passed the recorded resourceVersions, the restore can no longer be detected.
   */
  private async rewind(): Promise<void> {
    const { history, dice, clock } = this;
    const bumps = dice.chance(0.5);
    history.rewind(dice, bumps);
    // A source that is past the bump lists at some time, and all changes that are written meanwhile are newer than any known one.
    if (bumps) {
      for (const source of this.process.sources.values()) source.disconnect();
      return;
    }
    for (const source of this.process.sources.values()) source.noticed = false;
    let before = this.epochs();
    do {
      if (dice.chance(0.3)) {
        await this.crash();
        before = this.epochs();
      }
      for (const source of this.process.sources.values()) {
        source.disconnect();
        source.catchUp();
      }
    } while (dice.chance(0.2));
    const isOnRecord = ([namespace, { noticed }]: [string, NamespaceSource]) =>
      !noticed || (this.epochs().get(namespace) ?? 0) > (before.get(namespace) ?? 0);
    for (let wait = 0; wait < 100 && ![...this.process.sources].every(isOnRecord); wait++) await clock.advance(250);
    this.expect([...this.process.sources].every(isOnRecord), "that time went back is not on record");
  }

  /** The epochs on disk, by namespace. */
  private epochs(): Map<string, number> {
    const [view] = this.disk.views.values();
    return new Map([...(view?.cursors ?? [])].map(([namespace, { epoch }]) => [namespace, epoch]));
  }

  private run(delivery: Delivery): Promise<Outcome> {
    const { dice } = this;
    const process = this.incarnation;
    const { id, type, object, redelivered, attempt } = delivery;
    const key = keyOf(object);
    this.deliveries++;
    this.expect(!this.running.has(key), `two events of ${key} run at once`);
    this.expect(this.running.size < this.concurrency, "more lanes run than the manifest allows");
    // A condition may have suppressed the deliveries in between.
    const passed = type !== "Modified" && !this.conditional && this.passages.get(object.uid) === type;
    if (type === "Added" || type === "Deleted") this.passages.set(object.uid, type);
    this.expect(redelivered || attempt > 1 || !(this.begun.has(id) || passed), `${id} began again, unflagged`);
    this.running.add(key);
    this.begun.add(id);
    this.last.set(key, delivery);
    const failed = { type: "failed", durationMs: 1, error: { name: "Error", message: "no", stack: "" } } as const;
    const outcome: Outcome = this.calm || dice.chance(0.7) ? { type: "ok", durationMs: 1 } : failed;
    return new Promise((resolve) => {
      const end = () => {
        if (process !== this.incarnation) return;
        this.running.delete(key);
        resolve(outcome);
      };
      if (this.calm || dice.chance(0.5)) end();
      else this.clock.after(dice.pick([1, 100, 6_000, 80_000]), end);
    });
  }

  private async settleDown(): Promise<void> {
    this.calm = true;
    for (let round = 0; round < 200; round++) {
      for (const source of this.process.sources.values()) source.catchUp();
      await this.clock.advance(70_000);
      const [status] = this.process.dispatcher.status();
      if (status && status.queued + status.inFlight + status.spilled === 0) break;
    }
    for (const source of this.process.sources.values()) source.catchUp();
    await this.clock.advance(60_000);
  }

  /**
   * Checks the end of a world, once it is quiet: the recorded objects are those in scope, and the last delivery of each is true.
   * An
   * object that never met the condition need not be recorded.
   */
  private checkEnd(): void {
    const { disk, history, scope } = this;
    const [view] = disk.views.values();
    const here = [...history.here().values()].filter((it) => scope.has(it.namespace));
    const known = [...(view?.known ?? [])].map(([key, it]) => `${key}@${it.resourceVersion} ${it.uid} ${it.deleted}`);
    const isRow = new Set(known);
    const row = (it: (typeof here)[number]) => `${keyOf(it)}@${it.rv} ${it.uid} false`;
    const real = here.filter((it) => isRow.has(row(it)) || !this.conditional || it.a % 2 === 0).map(row);
    this.expect(known.sort().join() === real.sort().join(), `known at the end: ${known}, real: ${real}`);
    this.expect(disk.spill.size === 0, "the spill is not empty");
    for (const namespace of scope) {
      const mark = view?.cursors.get(namespace)?.lowWaterMark;
      this.expect(mark === String(history.now), `${namespace}'s mark is ${mark}, not ${history.now}`);
    }
    const told = (key: string) => this.last.get(key);
    for (const state of here) {
      if (this.conditional && state.a % 2 !== 0) continue;
      const last = told(keyOf(state));
      const same = last?.body.equals(changeOf(state).body) === true && last.type !== "Deleted";
      this.expect(same, `${keyOf(state)}@${state.rv} is there, last told: ${last?.id}`);
    }
    const present = new Set(here.map(keyOf));
    // After an object stops meeting the conditions, nothing more of it is delivered, not even its deletion.
    if (this.conditional) return;
    for (const [key, last] of this.last) {
      this.expect(present.has(key) || last.type === "Deleted", `${key} is gone, last told: ${last.id}`);
    }
  }

  private expect(holds: boolean, law: string): void {
    if (!holds) this.broken.push(law);
  }
}
