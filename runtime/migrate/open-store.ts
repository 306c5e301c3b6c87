import type { WatchfireError } from "../base/errors.ts";
import { Checkpoint, type StoreKind } from "../journal/checkpoint.ts";
import { elsewhere, type SharedJournal } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { type Elector, type Eligible, lostError } from "../lease/elector.ts";
import { awaited } from "../slots/taken-fleet.ts";
import { findPlace, unplaced } from "./find.ts";
import { alone } from "./layout.ts";
import { annotationsOf, placeIn, positionsKey, setOf, shardingsNote } from "./location.ts";
import { copyAll, type Destination, fillJournal, movePositions } from "./move.ts";
import { isShared, type NatsPlace, openShared, type SharedPlace } from "./open-journal.ts";
import { endOf, type PlaceOptions, type SourceJournals } from "./sources.ts";
import { untilReached } from "./until-reached.ts";

/** Options of a single runtime's store. */
interface StoreOptions extends PlaceOptions {
  /** The store to use. Default `sqlite`. */
  readonly store?: StoreKind;
  /** The pod's name, if there is an election. */
  readonly pod?: string | undefined;
  /** Called when another runtime has taken the store over. */
  readonly onLost: (error: WatchfireError) => void;
}

/**
 * Returns which runtimes may take the Lease: if the checkpoints are on a volume, only the pod with that volume. Everyone can
 * reach other stores, but a fleet's only with its NATS servers.
 */
export function eligibleFor(pod: string, nats: NatsPlace | undefined): Eligible {
  return (annotations) => {
    const { where, slots } = placeIn(annotations);
    if (slots !== undefined) {
      return nats ? undefined : `the checkpoints are with a fleet of ${slots} slots on NATS, and --nats is missing`;
    }
    if (where === "" || isShared(where) || where === `sqlite/${pod}`) return undefined;
    return `the checkpoints are with ${where.replace("sqlite/", "the volume of ")}`;
  };
}

/**
 * Opens the store with the checkpoints. If the Lease names another journal, they are first moved from there. Never starts with an
 * empty store while checkpoints exist elsewhere.
 * @throws WatchfireError of the checkpoint section
 */
export async function openStore(
  options: StoreOptions,
  elector: Elector | undefined,
  signal: AbortSignal,
): Promise<Checkpoint> {
  return elector ? new SoleStore(options, elector, signal).open() : new DataFolder(options.data, options.clock).open();
}

/** A single runtime has all checkpoints in one slot. */
const onlySlot = { layout: alone, slot: 0 };

/** Opens the store while the Lease is held. */
class SoleStore {
  private readonly options: StoreOptions;
  private readonly elector: Elector;
  private readonly signal: AbortSignal;
  private readonly folder: DataFolder;
  private readonly kind: StoreKind;
  private readonly volume: string;
  /** The place to be named by the Lease. */
  private readonly here: string;

  constructor(options: StoreOptions, elector: Elector, signal: AbortSignal) {
    const { store = "sqlite", pod = "", data, clock } = options;
    this.options = options;
    this.elector = elector;
    this.signal = signal;
    this.folder = new DataFolder(data, clock);
    this.kind = store;
    this.volume = `sqlite/${pod}`;
    this.here = store === "sqlite" ? this.volume : store;
  }

  async open(): Promise<Checkpoint> {
    const { options, elector, signal, kind, here } = this;
    await untilReached(options, signal, () => this.find());
    const opened = await untilReached(options, signal, () => this.openHere());
    if (this.where !== here) await elector.annotate({ [positionsKey]: here });
    if (kind !== "sqlite") this.folder.setAside();
    return opened;
  }

  private get where(): string {
    return placeIn(this.elector.annotations).where;
  }

  /** Restores the Lease's annotations for checkpoints on NATS, if they were deleted. */
  private async find(): Promise<void> {
    const { options, elector, kind, signal } = this;
    if (this.where !== "" || this.folder.holdsPositions) return;
    const found = await findPlace(options, signal);
    // An active replica has written it meanwhile.
    if (this.where !== "") return;
    // Other places are only valid for runtimes that reach them. NATS' record of them is reported when it is opened.
    if (!found || !(found.where === "nats" || found.where.startsWith("fleet/"))) return;
    if (kind === "kubernetes") {
      const secrets = await openShared(kind, options, elector);
      await secrets.close(secrets.previousEnd === "clean");
      // One of the two may be an incomplete copy, or the rest of a copied one.
      if (!secrets.isBlank && secrets.movedTo === undefined)
        throw unplaced(`NATS has checkpoints of ${found.where}, and so have the Secrets`);
    }
    await elector.annotate(found.annotations);
  }

  private async openHere(): Promise<Checkpoint> {
    const { where, kind, here, volume, folder } = this;
    if (where.startsWith("sqlite/") && where !== volume) throw elsewhere(`the checkpoints were moved to ${where}`);
    if (kind !== "sqlite") return this.openShared(kind);
    if (where !== here && where !== "") {
      const isMoved = await this.move(this.set, (sources) =>
        folder.fill(endOf(sources), (store) => copyAll(sources, store, onlySlot, this.signal)),
      );
      if (!isMoved) return this.openHere();
    }
    const areGone = where === here && !folder.holdsPositions;
    const store = folder.open();
    if (areGone) this.warnOfLoss();
    return store;
  }

  private async openShared(kind: SharedPlace): Promise<Checkpoint> {
    const { where, here, set, options, elector } = this;
    const journal = await openShared(kind, { ...options, set, isThere: where === here }, elector);
    let isHere = false;
    try {
      isHere = await this.receive(journal, set);
    } finally {
      if (!isHere) await journal.close(false);
    }
    return isHere ? new Checkpoint(journal) : this.openHere();
  }

  /** Moves the checkpoints into the journal, unless it has them. Returns `false` if the Lease names another place now. */
  private async receive(journal: SharedJournal, set: string): Promise<boolean> {
    const { where, here, volume, folder, elector, signal } = this;
    const { movedTo } = journal;
    if (where === here) {
      // The process that moved them ended before it could update the Lease.
      if (movedTo !== undefined) await elector.annotate({ [positionsKey]: movedTo });
      return movedTo === undefined;
    }
    if (where === "") {
      const fault = (what: string) => elsewhere(`${what}; the Lease does not say where checkpoints are`);
      if (movedTo !== undefined) throw fault(`the checkpoints were moved to ${movedTo}`);
      if (!folder.holdsPositions) return true;
      if (!journal.isBlank) throw fault("the store and the data folder both hold checkpoints");
      // If this process ends before the switch, the journal has an incomplete copy.
      await elector.annotate({ [positionsKey]: volume });
    }
    if (this.where === volume && !folder.holdsPositions) this.warnOfLoss();
    return this.move(set, (sources) => fillJournal(sources, journal, onlySlot, signal));
  }

  /** The set on NATS to move to, which is not the one moved from. */
  private get set(): string {
    const { set, slots } = placeIn(this.elector.annotations);
    if (slots === undefined) return set;
    const { fence } = this.elector;
    if (!fence) throw lostError("it was lost before the store was open");
    return setOf(fence);
  }

  /** Returns true if it moved them, and false if the Lease names another place now. */
  private async move(set: string, copy: (sources: SourceJournals) => Promise<void>): Promise<boolean> {
    const { options, elector, signal, here: where } = this;
    const waiting = (why: string | undefined) => options.waiting?.(why && awaited(why).message);
    const fill: Destination["fill"] = async (sources) => {
      await copy(sources);
      return { ...annotationsOf({ where, set, carried: {} }), ...shardingsNote(new Map()) };
    };
    return movePositions({ ...options, waiting }, elector, { where, fill }, signal);
  }

  private warnOfLoss(): void {
    const what = "checkpoints were lost with the volume, every existing object is new to the functions";
    this.options.log.error({ place: this.where }, what);
  }
}
