import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Delivery, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import type { Subscription } from "../../runtime/engine/intake/subscription.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { copyJournal } from "../../runtime/migrate/copy.ts";
import { change, manifest, trigger } from "../engine/fixture.ts";
import { ModelExecutor } from "../engine/model-executor.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { Dice } from "./random.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const ok: Outcome = { type: "ok", durationMs: 1 };

/** A store with room for all waiting events, or only for those that hold a checkpoint back. */
class Store extends MemoryStore {
  constructor(disk: MemoryDisk, holdsQueues: boolean) {
    super(disk, { holdsQueues });
  }
}

/** Runs a seed's world of one function that is paused and released, with power losses, clean ends and migrations. */
export async function runDoubtWorld(seed: number): Promise<{ broken: readonly string[]; deliveries: number }> {
  const world = new DoubtWorld(new Dice(seed));
  await world.live();
  return { broken: world.broken, deliveries: world.deliveries };
}

/** Objects are only created, each once, so each event has exactly one past. */
class DoubtWorld {
  readonly broken: string[] = [];
  deliveries = 0;
  private readonly dice: Dice;
  private readonly clock = new VirtualClock();
  private readonly holdsQueues: boolean;
  private readonly concurrency: number;
  private disk = new MemoryDisk();
  /** The disk at some moment of this process, which is what a power loss leaves. */
  private synced = new MemoryDisk();
  private newest = 0;
  /** Up to this resourceVersion, events may have been handled without a record. */
  private doubtedUpTo = 0;
  private readonly told = new Set<string>();
  private isPaused = false;
  private incarnation = 0;
  private process!: { readonly dispatcher: Dispatcher; readonly store: Store; readonly subscription: Subscription };

  constructor(dice: Dice) {
    this.dice = dice;
    this.holdsQueues = dice.chance(0.6);
    this.concurrency = 1 + dice.below(3);
  }

  async live(): Promise<void> {
    const { dice, clock } = this;
    await this.start();
    for (let step = 30 + dice.below(50); step > 0; step--) {
      if (dice.chance(0.5)) this.change();
      if (dice.chance(0.15)) this.pauseOrGoOn();
      if (dice.chance(0.2)) this.synced = copied(this.disk);
      if (dice.chance(0.05)) await this.losePower();
      else if (dice.chance(0.08)) await this.end(dice.chance(0.5));
      if (dice.chance(0.5)) await clock.advance(dice.pick([0, 1, 300, 5_000, 70_000]));
    }
    if (this.isPaused) this.pauseOrGoOn();
    await clock.advance(200_000);
    const missed = Array.from({ length: this.newest }, (_, at) => idOf(at + 1)).filter((id) => !this.told.has(id));
    if (missed.length > 0) this.broken.push(`never told: ${missed}`);
  }

  private change(): void {
    this.newest++;
    this.process.subscription.change(changeAt(this.newest));
  }

  private pauseOrGoOn(): void {
    this.isPaused = !this.isPaused;
    this.process.dispatcher[this.isPaused ? "hold" : "release"]("copy", "command");
  }

  private run({ id, redelivered, resourceVersion }: Delivery): Promise<Outcome> {
    const process = this.incarnation;
    this.deliveries++;
    if (this.told.has(id) && !redelivered) this.broken.push(`${id} comes again unflagged`);
    if (!this.told.has(id) && redelivered && Number(resourceVersion) > this.doubtedUpTo)
      this.broken.push(`${id} is flagged, and nobody can have had it: all up to ${this.doubtedUpTo} may be known`);
    this.told.add(id);
    return new Promise((resolve) => {
      const end = () => process === this.incarnation && resolve(ok);
      if (this.dice.chance(0.6)) end();
      else this.clock.after(this.dice.pick([1, 200, 9_000]), end);
    });
  }

  private async start(): Promise<void> {
    const { clock, dice, concurrency } = this;
    const store = new Store(this.disk, this.holdsQueues);
    if (store.previousEnd === "power-loss") this.doubtedUpTo = this.newest;
    const executor = new ModelExecutor(
      () => concurrency,
      (delivery) => this.run(delivery),
    );
    const memoryLimit = { events: this.holdsQueues ? dice.pick([2, 1000]) : 1000, bytes: 1 << 20 };
    const parts = { store, runner: executor, clock, random: dice.next, observer: {}, log: silent, memoryLimit };
    const dispatcher = await Dispatcher.open(parts);
    if (this.isPaused) dispatcher.hold("copy", "command");
    const loaded = await dispatcher.function(manifest({ concurrency }, [trigger()]), { usesOldObject: false });
    const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
    this.process = { dispatcher, store, subscription };
    const to = resourceVersion(String(this.newest));
    subscription.serverIsAt(to);
    const from = subscription.resumeFrom;
    const list = from === undefined ? subscription.list("initial", undefined) : undefined;
    for (let rv = Number(from ?? 0) + 1; rv <= this.newest; rv++) {
      if (list) list.item(changeAt(rv));
      else subscription.change(changeAt(rv));
    }
    list?.end(to);
    subscription.bookmark(to);
    await clock.advance(1);
    this.synced = copied(this.disk);
  }

  /**
   * Simulates a power loss: what was written after some moment is lost, although handlers may have received all of it.
   */
  private async losePower(): Promise<void> {
    this.incarnation++;
    this.process.dispatcher.halt();
    await this.clock.quiet();
    this.disk = this.synced;
    this.disk.end = "power-loss";
    await this.start();
  }

  /** Stops the process and starts another, from the same store or from another one that everything was migrated to. */
  private async end(isCarried: boolean): Promise<void> {
    const { dispatcher, store } = this.process;
    const drained = dispatcher.drain(15_000);
    await this.clock.advance(30_000);
    const clean = await drained;
    if (!clean) this.broken.push(`an end at ${this.newest} is not clean, and nothing is in doubt that is not noted`);
    this.incarnation++;
    await store.close(clean);
    if (isCarried) {
      const from = new Store(this.disk, this.holdsQueues);
      this.disk = new MemoryDisk();
      await copyJournal(from, new Store(this.disk, this.holdsQueues));
      this.disk.end = from.previousEnd;
    }
    await this.start();
  }
}

const nameAt = (rv: number): string => `o${rv}`;
const changeAt = (rv: number) => change("Added", nameAt(rv), rv);
const idOf = (rv: number): string => `settings:${changeAt(rv).meta.uid}/${rv}/Added`;

/** A copy of the disk's current content. */
function copied(disk: MemoryDisk): MemoryDisk {
  const copy = new MemoryDisk();
  copy.cluster = disk.cluster;
  copy.end = disk.end;
  copy.nextView = disk.nextView;
  copy.nextLetter = disk.nextLetter;
  for (const [id, view] of disk.views)
    copy.views.set(id, { ...view, cursors: new Map(view.cursors), known: new Map(view.known) });
  for (const [id, row] of disk.begun) copy.begun.set(id, row);
  for (const [id, event] of disk.spill) copy.spill.set(id, event);
  for (const [id, letter] of disk.letters) copy.letters.set(id, letter);
  for (const [name, since] of disk.paused) copy.paused.set(name, since);
  return copy;
}
