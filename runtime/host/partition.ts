import { pause } from "../base/clock.ts";
import { asWatchfireError, type WatchfireError } from "../base/errors.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import { type Sharding, spreadIn, whole } from "../migrate/sharding.ts";
import type { HeldSlot } from "../slots/held-slot.ts";
import type { SlotWork } from "../slots/slot-owner.ts";
import { type ActiveComponents, activate, type Components, type LeaseHold, type RuntimeOptions } from "./components.ts";
import { slotPrefix } from "./fleet/fleet-letters.ts";
import { LiveFunctions } from "./live-functions.ts";

/** How long handlers may finish, in milliseconds. A pod's default grace is 30 s, and the journal must be closed within it. */
const drainMs = 25_000;
/** How long handlers that were interrupted may take to be gone, in milliseconds. */
const interruptedMs = 1_000;

interface PartitionParts {
  readonly options: RuntimeOptions;
  readonly components: Components;
  /** The slot that it is; undefined: it is all there is. */
  readonly held?: HeldSlot | undefined;
  /** Makes the source of its functions. `recorded`: how a function's positions here are spread. */
  readonly source: (recorded: (name: string) => Promise<Sharding | undefined>) => FunctionSource;
  /** Why its positions cannot be read, while that is so. */
  readonly damage?: () => WatchfireError | undefined;
  /** What was taken cannot be worked on: the host's end. */
  readonly onLost: (error: WatchfireError) => void;
  /** The slot is another replica's from now on. */
  readonly over?: (partition: Partition) => void;
}

/** An engine and its journal, with the functions that it runs: all of them, or those of one slot. */
export class Partition implements SlotWork {
  readonly held: HeldSlot | undefined;
  readonly live: LiveFunctions;
  /** Why its positions cannot be opened yet, in words. */
  delay: string | undefined;
  private readonly parts: PartitionParts;
  private readonly hold: LeaseHold | undefined;
  private readonly stopping = new AbortController();
  private opening: Promise<void> = Promise.resolve();
  /** Resolves once its positions are open, or are known to be damaged, or it ends. */
  private readonly tried = Promise.withResolvers<void>();
  private opened: ActiveComponents | undefined;

  constructor(parts: PartitionParts) {
    this.parts = parts;
    this.held = parts.held;
    this.hold = parts.held ?? parts.components.elector;
    const source = parts.source((name) => this.recorded(name));
    this.live = new LiveFunctions({ ...parts.options, source, active: () => this.opened });
  }

  /** Undefined until its journal is open. */
  get active(): ActiveComponents | undefined {
    return this.opened;
  }

  /** Whether it may go on: no other replica can have it. */
  get holds(): boolean {
    return this.hold?.holds ?? true;
  }

  /** Whether it ends. */
  get isEnding(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Resolves once nothing of its opening goes on any more. */
  get ended(): Promise<void> {
    return this.opening;
  }

  /** Why it stands still: its positions cannot be read. */
  get damage(): WatchfireError | undefined {
    return this.parts.damage?.();
  }

  /**
   * Opens it by `open`, until it ends or `until` aborts. A failure is the host's end. Never rejects.
   * @param open calls `told` where it finds the positions damaged, and goes on
   */
  begin(open: (signal: AbortSignal, told: () => void) => Promise<void>, until?: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([this.stopping.signal, ...(until ? [until] : [])]);
    this.opening = open(signal, this.tried.resolve)
      .catch((error: unknown) => {
        if (!signal.aborted) this.parts.onLost(asWatchfireError(error));
      })
      .finally(this.tried.resolve);
    return this.opening;
  }

  /** Works on this journal from now on. `cluster`: whose it must be. A journal that it cannot work on is closed. */
  async open(store: Checkpoint, cluster?: string): Promise<void> {
    const { options, components, onLost } = this.parts;
    const { held, hold, stopping } = this;
    const lost = (error: WatchfireError) => {
      if (!held || !stopping.signal.aborted) onLost(error);
    };
    try {
      if (held) stopping.signal.throwIfAborted();
      if (cluster !== undefined) await claimCluster(store, cluster);
      this.opened = await activate(components, store, options, lost, {
        hold,
        instanceOf: (name) => this.live.get(name)?.instance ?? name,
        letterPrefix: held ? slotPrefix(held.slot) : "",
      });
    } catch (error) {
      await store.close(false);
      throw error;
    }
  }

  /** Takes up what its source has now. Where its positions are damaged, it does so once they are open. */
  async reload(): Promise<void> {
    await this.tried.promise;
    if (!this.opened) return;
    // It may read its functions for the first time: an older reading never comes after a newer one.
    await this.opening;
    await this.live.read(this.stopping.signal);
  }

  /** Begins nothing any more. */
  freeze(): void {
    this.stopping.abort();
    this.live.freeze();
  }

  /** Begins nothing and writes nothing any more, as a killed process does. */
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

  /** The same where others go on in this process, which needs its sources and isolates let go of; then closes it. Never rejects. */
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

  /** How a function's positions here are spread; undefined where there are none. */
  private async recorded(name: string): Promise<Sharding | undefined> {
    const store = this.opened?.store;
    if (!store) return undefined;
    const retired = (await store.retiredViews()).filter((view) => view.function === name);
    const views = [...(await store.views(name)), ...retired];
    const selections = views.flatMap(({ cursors }) => cursors.flatMap(({ selection }) => selection || []));
    const spreads = selections.flatMap((selection) => spreadIn(selection) ?? []);
    // A shard without a namespace of its own has no position that says it.
    return spreads[0] ?? (selections.length > 0 ? whole : undefined);
  }
}
