import type { Delivery, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import type { Cause } from "../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import type { DeliverySettings as Policy, Trigger } from "../../runtime/manifest/function.ts";
import { manifest, trigger } from "../engine/fixture.ts";
import { ModelExecutor } from "../engine/model-executor.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";
import { CrashingStore, roomy } from "./crashing-store.ts";
import { History, type Revision } from "./history.ts";
import { Dice } from "./random.ts";
import { SimulatedSource } from "./simulated-source.ts";

const shops = ["a", "b", "c", "d"];
const silent = { info: () => {}, warn: () => {}, error: () => {} };
const ok: Outcome = { type: "ok", durationMs: 1 };

/** The owners of a child, which change with its state; sometimes it has no owner. */
const ownerOf = ({ a }: Revision): string[] => (a % 5 === 4 ? [] : [shops[a % 4] as string]);
/** The names in a setting, which an expression returns. */
const named = ({ a }: Revision): string[] => (a % 2 === 0 ? ["a", "b"] : ["c"]);
const namedBy = 'object.spec.a % 2 == 0 ? ["a", "b"] : ["c"]';

interface Kind {
  readonly trigger: Trigger;
  readonly history: History;
  readonly names: readonly string[];
  keysOf(revision: Revision): readonly string[];
}

/**
 * Runs a seed's world of owners and two kinds of children. Returns the laws that were broken, and how many runs there were.
 */
export async function runReconcileWorld(seed: number): Promise<{ broken: readonly string[]; runs: number }> {
  const world = new ReconcileWorld(new Dice(seed));
  await world.live();
  return { broken: world.broken, runs: world.runs };
}

class ReconcileWorld {
  readonly broken: string[] = [];
  runs = 0;
  private readonly dice: Dice;
  private readonly clock = new VirtualClock();
  private readonly disk = new MemoryDisk();
  private readonly kinds: readonly Kind[];
  private readonly policy: Pick<Policy, "concurrency" | "onFailure" | "mode"> & Partial<Policy>;
  private readonly crashes: boolean;
  private process!: { dispatcher: Dispatcher; store: CrashingStore; sources: readonly SimulatedSource[] };
  private executor!: ModelExecutor;
  private incarnation = 0;
  private calm = false;
  private gaps = 0;
  private lastDeath = { at: 0, gaps: 0 };
  /** Counter of all events in the world. */
  private tick = 0;
  private readonly changedAt = new Map<Revision, number>();
  private readonly lastBegan = new Map<string, { readonly at: number; readonly delivery: Delivery }>();
  private readonly running = new Set<string>();
  /** Keys whose run was interrupted by the end of its process. */
  private readonly cut = new Set<string>();
  /** The time when a key's handler asked to run again. */
  private readonly asked = new Map<string, number>();

  constructor(dice: Dice) {
    this.dice = dice;
    const kind = (it: Partial<Trigger>, names: readonly string[], keysOf: Kind["keysOf"]): Kind => ({
      trigger: trigger(it),
      history: new History(),
      names,
      keysOf,
    });
    const owner = { type: "owner", apiVersion: "shop.example/v1", kind: "Shop" } as const;
    this.kinds = [
      kind({ name: "shops", apiVersion: "shop.example/v1", kind: "Shop" }, shops, ({ name }) => [name]),
      kind({ name: "children", kind: "Pod", key: owner }, ["x", "y", "z"], ownerOf),
      kind({ name: "settings", key: { type: "expression", expression: namedBy } }, ["s", "t"], named),
    ];
    this.policy = {
      mode: "Reconcile",
      concurrency: 1 + dice.below(4),
      onFailure: dice.pick(["DeadLetter", "Block", "Drop"]),
      ...(dice.chance(0.3) && { resyncMs: 600_000 }),
    };
    this.crashes = dice.chance(0.8);
  }

  async live(): Promise<void> {
    const { dice } = this;
    for (let changes = dice.below(6); changes > 0; changes--) this.change();
    await this.start();
    for (let step = 40 + dice.below(80); step > 0; step--) {
      if (dice.chance(0.6)) this.change();
      if (dice.chance(0.05)) for (const { history } of this.kinds) history.compacted = history.now;
      if (this.crashes && dice.chance(0.05)) await this.crash();
      else if (dice.chance(0.02)) await this.restart();
      dice.pick(this.process.sources).step();
      if (dice.chance(0.4)) await settle();
      if (dice.chance(0.4)) await this.clock.advance(dice.pick([0, 1, 30, 300, 5_000, 70_000]));
    }
    if (this.crashes) await this.dieBeforeBodies();
    await this.settleDown();
    await this.drain();
    this.checkEnd();
  }

  private change(): void {
    const { history, names } = this.dice.pick(this.kinds);
    const before = history.log.length;
    history.change(this.dice, names);
    for (const revision of history.log.slice(before)) this.changedAt.set(revision, ++this.tick);
  }

  private run(delivery: Delivery): Promise<Outcome> {
    const { dice, clock } = this;
    const process = this.incarnation;
    const key = delivery.object.name;
    this.begins(key, delivery);
    const outcome = this.calm ? ok : this.outcome();
    return new Promise((resolve) => {
      const end = () => {
        if (process !== this.incarnation) return;
        this.running.delete(key);
        if (outcome.type === "ok" && outcome.requeueAfterMs !== undefined) {
          this.asked.set(key, clock.now() + outcome.requeueAfterMs);
        }
        resolve(outcome);
      };
      if (this.calm || dice.chance(0.4)) end();
      else clock.after(dice.pick([1, 100, 6_000, 80_000]), end);
    });
  }

  private begins(key: string, delivery: Delivery): void {
    const { causes = [], redelivered, body } = delivery;
    this.runs++;
    this.expect(!this.running.has(key), `two runs of ${key} at once`);
    this.running.add(key);
    this.lastBegan.set(key, { at: ++this.tick, delivery });
    this.expect(causes.length > 0 && causes.length <= 16, `${causes.length} causes`);
    if (this.cut.delete(key)) this.expect(redelivered, `a run of ${key} was cut off, and the next one is not flagged`);
    const due = this.asked.get(key);
    this.asked.delete(key);
    if (causes.every(({ type }) => type === "Requeue")) {
      this.expect(due === undefined || this.clock.now() >= due, `${key} was run before the time that it asked for`);
    }
    if (body.length === 0) return;
    const { metadata } = JSON.parse(body.toString());
    const state = this.kinds[0]?.history.find(metadata.resourceVersion);
    this.expect(state?.name === key && state.type !== "Deleted", `${key} was told a state that it never had`);
  }

  private outcome(): Outcome {
    const { dice } = this;
    const error = { name: "Error", message: "no", stack: "" };
    if (dice.chance(0.5)) return ok;
    if (dice.chance(0.4)) return { type: "ok", durationMs: 1, requeueAfterMs: dice.pick([0, 500, 20_000, 90_000]) };
    if (dice.chance(0.6)) return { type: "failed", durationMs: 1, error };
    return dice.chance(0.5) ? { type: "permanent", durationMs: 1, error } : { type: "interrupted" };
  }

  private async start(): Promise<void> {
    const { clock, dice, disk, kinds, policy } = this;
    this.executor = new ModelExecutor(
      () => policy.concurrency,
      (delivery) => this.run(delivery),
    );
    const store = new CrashingStore(disk, dice, roomy, () => this.checkDisk());
    const random = dice.next;
    const parts = { store, runner: this.executor, clock, random, observer: {}, log: silent };
    const dispatcher = await Dispatcher.open({
      ...parts,
      memoryLimit: { events: dice.pick([2, 1000]), bytes: 1 << 20 },
    });
    const triggers = kinds.map((kind) => kind.trigger);
    const loaded = await dispatcher.function(manifest(policy, triggers), { usesOldObject: false });
    const sources = kinds.map((kind) => {
      const subscription = loaded.subscription(kind.trigger.name, { selection: "all", namespace: "" });
      return new SimulatedSource(kind.history, owned(subscription), dice, () => this.gaps++);
    });
    this.process = { dispatcher, store, sources };
  }

  private async crash(losesBodies = this.dice.chance(0.5)): Promise<void> {
    this.process.store.dead = true;
    this.process.dispatcher.halt();
    if (losesBodies) this.loseBodies();
    this.ended();
    await settle();
    await this.start();
  }

  /**
   * Makes the last changes after a kill that left rows without bodies, so that no later change hides what they miss.
   */
  private async dieBeforeBodies(): Promise<void> {
    for (const source of this.process.sources) source.catchUp();
    await this.clock.advance(70_000);
    await this.crash(true);
    this.lastDeath = { at: this.tick, gaps: this.gaps };
    for (let changes = 1 + this.dice.below(4); changes > 0; changes--) this.change();
  }

  /** Drops children's bodies, which are written after their rows or kept only in memory. */
  private loseBodies(): void {
    for (const { trigger: name, known } of this.disk.views.values()) {
      if (name === "shops") continue;
      for (const [key, object] of known) known.set(key, { ...object, body: undefined });
    }
  }

  private async drain(): Promise<void> {
    let open = true;
    void this.process.dispatcher.drain(10_000).then(() => {
      open = false;
    });
    while (open) await this.clock.advance(10_000);
  }

  private async restart(): Promise<void> {
    await this.drain();
    this.process.store.dead = true;
    this.ended();
    await this.start();
  }

  private ended(): void {
    this.incarnation++;
    for (const key of this.running) this.cut.add(key);
    this.running.clear();
    // A request to run again that is not on record is unknown to the next process, which runs the key at once.
    const rows = [...this.disk.spill.values()];
    for (const [key, due] of this.asked) {
      if (!rows.some(({ name, notBefore }) => name === key && notBefore === due)) this.asked.set(key, 0);
    }
  }

  /** Checks after each commit that there is one row per key. */
  private checkDisk(): void {
    const keys = [...this.disk.spill.values()].filter(({ kind }) => kind === "key").map(({ name }) => name);
    this.expect(new Set(keys).size === keys.length, `rows on disk: ${keys}`);
  }

  private async settleDown(): Promise<void> {
    this.calm = true;
    for (let round = 0; round < 100; round++) {
      const took = this.process.sources.map((source) => source.catchUp());
      await this.clock.advance(70_000);
      const [status] = this.process.dispatcher.status();
      const waits = status ? status.queued + status.inFlight + status.spilled + status.requeued : 1;
      if (took.every((each) => each) && waits === 0) break;
    }
    // Commits take turns of the event loop, but no time.
    for (let turn = 0; turn < 20; turn++) await settle();
    await this.clock.advance(5_000);
    for (let turn = 0; turn < 20; turn++) await settle();
  }

  /** Checks the end of a quiet world: nothing is left over, and each last state was followed by a run that saw it. */
  private checkEnd(): void {
    const isResync = (causes: readonly Cause[] = []) =>
      causes.length > 0 && causes.every(({ type }) => type === "Resync");
    const rows = [...this.disk.spill.values()]
      .filter((row) => row.kind !== "key" || !isResync(row.pending.causes))
      .map(({ name }) => name);
    this.expect(rows.length === 0, `keys that still wait: ${rows}`);
    this.expect(this.asked.size === 0, `asked to be run again, and were not: ${[...this.asked.keys()]}`);
    for (const { history, keysOf, trigger: of } of this.kinds) {
      const before = new Map<string, Revision>();
      for (const revision of history.log) {
        const was = before.get(revision.name);
        before.set(revision.name, revision);
        const isLast = history.at(history.now).get(revision.name) === revision;
        // A state that was lost with the history may never have been seen.
        const { at, gaps } = this.lastDeath;
        const isSeen = this.gaps === 0 || (this.gaps === gaps && (this.changedAt.get(revision) ?? 0) > at);
        if (!isLast && !isSeen) continue;
        const keys = new Set([...keysOf(revision), ...(was && was.uid === revision.uid ? keysOf(was) : [])]);
        for (const key of isSeen ? keys : keysOf(revision)) this.checkRun(key, revision, of.name);
      }
    }
    const now = this.kinds[0]?.history.at(this.kinds[0].history.now);
    for (const [key, { delivery }] of this.lastBegan) {
      const real = now?.get(key);
      const told =
        delivery.body.length === 0 ? undefined : JSON.parse(delivery.body.toString()).metadata.resourceVersion;
      this.expect(told === (real && String(real.rv)), `${key} is at ${real?.rv}, and was told last at ${told}`);
    }
  }

  private checkRun(key: string, revision: Revision, of: string): void {
    const changed = this.changedAt.get(revision) ?? 0;
    const began = this.lastBegan.get(key)?.at ?? 0;
    this.expect(began > changed, `no run of ${key} began after ${revision.type} ${of}/${revision.name}@${revision.rv}`);
  }

  private expect(holds: boolean, law: string): void {
    if (!holds) this.broken.push(law);
  }
}

/** Wraps the subscriber so that children have owners. */
function owned(subscriber: Subscriber): Subscriber {
  const withOwner = (change: Change): Change => {
    const object = JSON.parse(change.body.toString());
    const [name] = ownerOf(object.spec);
    const ownerReferences = name ? [{ apiVersion: "shop.example/v1", kind: "Shop", name, uid: "u" }] : [];
    return {
      ...change,
      body: Buffer.from(JSON.stringify({ ...object, metadata: { ...object.metadata, ownerReferences } })),
    };
  };
  return new Proxy(subscriber, {
    get(target, name) {
      if (name === "change") return (change: Change) => target.change(withOwner(change));
      if (name === "list") {
        return (...given: Parameters<Subscriber["list"]>) => {
          const receiver = target.list(...given);
          return {
            item: (change: Change) => receiver.item(withOwner(change)),
            end: receiver.end.bind(receiver),
            abort: receiver.abort.bind(receiver),
          };
        };
      }
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
