import { pause } from "../../base/clock.ts";
import { asWatchfireError, type WatchfireError } from "../../base/errors.ts";
import { Checkpoint } from "../../journal/checkpoint.ts";
import { claimCluster } from "../../journal/cluster.ts";
import type { Nats } from "../../journal/nats/connection.ts";
import { readSlot } from "../../journal/nats/slot.ts";
import { elsewhere } from "../../migrate/errors.ts";
import { fleetPlace, type JournalLocation, slotName } from "../../migrate/journal-location.ts";
import { openSlot, roomOfSlot } from "../../migrate/open-nats.ts";
import { type Sharding, spreadIn, whole } from "../../migrate/sharding.ts";
import { untilReached } from "../../migrate/until-reached.ts";
import type { HeldSlot } from "../../slots/held-slot.ts";
import type { SlotWork } from "../../slots/slot-owner.ts";
import { type ActiveComponents, activate, type Components, type RuntimeOptions } from "../components.ts";
import { LiveFunctions } from "../live-functions.ts";
import type { Catalogue } from "./catalogue.ts";
import { DamagedSlots } from "./damaged-slots.ts";
import { slotPrefix } from "./fleet-letters.ts";

/** How long a slot's handlers may finish before it is given away, in milliseconds: as long as in a process that is told to end. */
const drainMs = 25_000;
/** How long handlers that were interrupted may take to be gone, in milliseconds. */
const interruptedMs = 1_000;

/** What the run of a slot is made of. */
export interface SlotRunParts {
  readonly options: RuntimeOptions;
  readonly components: Components;
  readonly catalogue: Catalogue;
  readonly connection: Nats;
  readonly slots: number;
  /** Where the runtime's positions were when this replica joined. */
  readonly place: JournalLocation;
  /** Reads where they are. */
  readonly readPlace: () => Promise<JournalLocation>;
  /** The cluster's uid, where it is known. */
  readonly cluster: string | undefined;
  /** What was taken cannot be worked on: the replica's end. */
  readonly onLost: (error: WatchfireError) => void;
  /** The slot is another replica's from now on. */
  readonly over: (run: SlotRun) => void;
}

/** The functions of one slot, from the opening of their positions to the last commit. */
export class SlotRun implements SlotWork {
  readonly held: HeldSlot;
  readonly live: LiveFunctions;
  private readonly parts: SlotRunParts;
  private readonly stopping = new AbortController();
  private readonly damages: DamagedSlots;
  private readonly opening: Promise<void>;
  /** Resolves once its positions are open, or are known to be damaged, or it ends. */
  private readonly tried = Promise.withResolvers<void>();
  private opened: ActiveComponents | undefined;
  private why: string | undefined;

  constructor(parts: SlotRunParts, held: HeldSlot) {
    this.parts = parts;
    this.held = held;
    const source = parts.catalogue.of(held.slot, (name) => this.recorded(name));
    this.live = new LiveFunctions({ ...parts.options, source, active: () => this.opened });
    this.damages = new DamagedSlots({ ...parts.options, held });
    this.opening = this.open()
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) parts.onLost(asWatchfireError(error));
      })
      .finally(this.tried.resolve);
  }

  /** Undefined until its positions are open. */
  get active(): ActiveComponents | undefined {
    return this.opened;
  }

  /** Whether it ends. */
  get isEnding(): boolean {
    return this.stopping.signal.aborted;
  }

  /** Why its positions cannot be opened yet. */
  get delay(): string | undefined {
    return this.why;
  }

  /** Why it stands still: its positions cannot be read. */
  get damage(): WatchfireError | undefined {
    return this.damages.fault;
  }

  /** Takes up what the catalogue has now. Where its positions are damaged, it does so once they are open. */
  async reload(): Promise<void> {
    await this.tried.promise;
    if (!this.opened) return;
    // It may read its functions for the first time: an older reading never comes after a newer one.
    await this.opening;
    await this.live.read(this.stopping.signal);
  }

  /** Lets handlers finish for at most 25 s, saves, and closes its positions. Never rejects. */
  async end(): Promise<void> {
    this.stopping.abort();
    this.live.freeze();
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
      log.warn({ slot: this.held.slot, error: String(error) }, "slot not closed as clean");
    });
  }

  over(): void {
    this.parts.over(this);
  }

  /** Begins nothing and writes nothing any more, as a killed process does. */
  halt(): void {
    this.stopping.abort();
    this.live.freeze();
    this.opened?.dispatcher.halt();
  }

  private async open(): Promise<void> {
    const { options, components, cluster, onLost } = this.parts;
    const { held } = this;
    const { signal } = this.stopping;
    const from = options.clock.monotonic();
    const lost = (error: WatchfireError) => {
      if (!signal.aborted) onLost(error);
    };
    const store = await this.openStore(lost);
    try {
      signal.throwIfAborted();
      if (cluster !== undefined) await claimCluster(store, cluster);
      const instanceOf = (name: string) => this.live.get(name)?.instance ?? name;
      const part = { hold: held, instanceOf, letterPrefix: slotPrefix(held.slot) };
      this.opened = await activate(components, store, options, lost, part);
    } catch (error) {
      await store.close(false);
      throw error;
    }
    await this.live.read(signal);
    if (signal.aborted) return;
    const tookMs = Math.round(options.clock.monotonic() - from);
    options.log.info({ slot: held.slot, functions: this.live.all.length, tookMs }, "slot runs");
  }

  /** Waits for what passes, and for positions that are damaged to be repaired. */
  private async openStore(onLost: (error: WatchfireError) => void): Promise<Checkpoint> {
    const { options, connection, slots, place, readPlace } = this.parts;
    const { held, damages } = this;
    const { signal } = this.stopping;
    const room = roomOfSlot(slots);
    const waiting = (why: string | undefined) => {
      this.why = why;
    };
    const slot = slotName(place.set, held.slot);
    const patient = { ...options, waiting };
    const open = async () => {
      // Once the slot is this replica's: whoever carries positions away has all slots until the place says so.
      const { where, set, carried } = await readPlace();
      if (where !== fleetPlace(slots) || set !== place.set)
        throw elsewhere(`the positions of slot ${held.slot} went to ${where || "nowhere"}`);
      const of = { connection, slot, carried: carried[held.slot], room, cacheBytes: room };
      return new Checkpoint(await openSlot({ ...options, ...of, onLost }, held));
    };
    return damages.untilWhole(
      {
        open: () => untilReached(patient, signal, open),
        read: () => untilReached(patient, signal, () => readSlot({ ...options, nats: connection, slot })),
        told: this.tried.resolve,
      },
      signal,
    );
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
