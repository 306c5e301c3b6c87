import { WatchfireError } from "../base/errors.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import type { SharedJournal } from "../journal/journal.ts";
import { elsewhere } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import type { Elector, Eligible } from "../lease/elector.ts";
import { carryOver } from "./carry-over.ts";
import { findPlace } from "./found-journal.ts";
import { placeIn, positionsKey } from "./journal-location.ts";
import { leaveFleet } from "./leave-fleet.ts";
import type { NatsPlace } from "./open-nats.ts";
import { isShared, type SharedPlace, sharedJournals } from "./shared-journals.ts";
import type { StoreOptions } from "./store-options.ts";
import { untilReached } from "./until-reached.ts";

/**
 * Only the pod whose volume holds the positions may take the Lease; positions elsewhere are within everybody's reach. Those
 * of a fleet are so for whoever knows its NATS.
 */
export function eligibleFor(pod: string, nats: NatsPlace | undefined): Eligible {
  return (annotations) => {
    const { where, slots } = placeIn(annotations);
    if (slots !== undefined) {
      return nats ? undefined : `the positions are with a fleet of ${slots} slots on NATS, and --nats names none`;
    }
    if (where === "" || isShared(where) || where === `sqlite/${pod}`) return undefined;
    return `the positions are with ${where.replace("sqlite/", "the volume of ")}`;
  };
}

/**
 * Opens the store where positions are to be kept, with the positions in it. Where the Lease says that they are in the
 * other kind of store, they are carried over first, whole. Never begins with nothing where there were any.
 * @throws WatchfireError of the checkpoint section
 */
export async function openStore(
  options: StoreOptions,
  elector: Elector | undefined,
  signal: AbortSignal,
): Promise<Checkpoint> {
  if (!elector) return new DataFolder(options.data, options.clock).open();
  const { store = "sqlite" } = options;
  const here = hereOf(options);
  await untilReached(options, signal, () => replace(options, elector, signal));
  const opened = await untilReached(options, signal, () => {
    const isFleet = placeIn(elector.annotations).slots !== undefined;
    if (isFleet) return leaveFleet(options, elector, here, signal);
    return store === "sqlite" ? openFolder(options, elector) : openShared(store, options, elector);
  });
  if (placeOn(elector) !== here) await elector.annotate({ [positionsKey]: here });
  if (store !== "sqlite") new DataFolder(options.data, options.clock).setAside();
  return opened;
}

/** Says on the Lease where positions are on NATS, where it does not: somebody has deleted it. */
async function replace(options: StoreOptions, elector: Elector, signal: AbortSignal): Promise<void> {
  if (placeOn(elector) !== "" || new DataFolder(options.data, options.clock).holdsPositions) return;
  const found = await findPlace(options, signal);
  // A replica at work has said it meanwhile.
  if (placeOn(elector) !== "") return;
  // Elsewhere they are only for whoever reaches them: what NATS says of that is told as it is opened.
  if (!found || !(found.where === "nats" || found.where.startsWith("fleet/"))) return;
  // One of them may be half of a copy, or what a copy has left.
  if (options.store === "kubernetes" && (await areInSecrets(options, elector)))
    throw new WatchfireError("WF_CHECKPOINT_UNPLACED", {
      what: `NATS has positions of ${found.where}, and the Secrets have some`,
    });
  await elector.annotate(found.annotations);
}

/** Whether the Secrets hold positions, which stay as they are. */
async function areInSecrets(options: StoreOptions, elector: Elector): Promise<boolean> {
  const journal = await shared("kubernetes", options, elector);
  await journal.close(journal.previousEnd === "clean");
  return !journal.isBlank && journal.movedTo === undefined;
}

/** With the positions in it. @throws WatchfireError, and closes it */
async function openShared(place: SharedPlace, options: StoreOptions, elector: Elector): Promise<Checkpoint> {
  const journal = await shared(place, options, elector);
  try {
    await fill(options, elector, journal);
    return new Checkpoint(journal);
  } catch (error) {
    await journal.close(false);
    throw error;
  }
}

/** Brings positions that are elsewhere into a store that every replica reaches. */
async function fill(options: StoreOptions, elector: Elector, opened: SharedJournal): Promise<void> {
  const folder = new DataFolder(options.data, options.clock);
  const place = placeOn(elector);
  const to = hereOf(options);
  const fault = (what: string) => elsewhere(`${what}; the Lease says ${place || "nothing of positions"}`);
  if (place === to) return;
  if (isShared(place)) {
    const from = await shared(place, options, elector);
    return moved(from, async () => {
      // It may say of itself that they were moved, and the Lease does now.
      if (placeOn(elector) !== place) return fill(options, elector, opened);
      await copy(new Checkpoint(from), opened);
      await from.moveTo(to);
      options.log.info({ from: place, to: options.store }, "positions carried over");
    });
  }
  if (place === "") {
    if (opened.movedTo !== undefined) throw fault(`the positions were moved to ${opened.movedTo}`);
    if (!folder.holdsPositions) return;
    if (!opened.isBlank) throw fault("the store and the data folder both hold positions");
    // Should this process end on the way, the store holds a part of them.
    await elector.annotate({ [positionsKey]: volumeOf(options) });
  }
  if (!folder.holdsPositions) {
    options.log.error({ place }, "positions are gone with the volume, every existing object is new to the functions");
    await opened.clear("new");
    return;
  }
  const from = new Checkpoint(new SqliteJournal({ folder: options.data, maintenance: true }));
  try {
    await copy(from, opened);
    options.log.info({ from: "sqlite", to: options.store }, "positions carried over");
  } finally {
    await from.close(false);
  }
}

async function copy(from: Checkpoint, to: SharedJournal): Promise<void> {
  await to.clear(from.previousEnd);
  await carryOver(from, new Checkpoint(to));
  await to.syncWhole();
}

/** Moves positions out of it, and closes it. Where that is in vain, how the last run had ended is still to be known. */
async function moved(from: SharedJournal, move: () => Promise<void>): Promise<void> {
  try {
    await move();
  } catch (error) {
    await from.close(from.previousEnd === "clean").catch(() => undefined);
    throw error;
  }
  await from.close(false);
}

async function openFolder(options: StoreOptions, elector: Elector): Promise<Checkpoint> {
  const folder = new DataFolder(options.data, options.clock);
  const here = volumeOf(options);
  const place = placeOn(elector);
  if (isShared(place)) {
    const from = await shared(place, options, elector);
    await moved(from, async () => {
      if (placeOn(elector) !== place) return;
      await folder.fill(from.previousEnd, (to) => carryOver(new Checkpoint(from), to));
      await from.moveTo(here);
      options.log.info({ from: place, to: "sqlite" }, "positions carried over");
    });
  }
  const areGone = placeOn(elector) === here && !folder.holdsPositions;
  const store = folder.open();
  if (areGone)
    options.log.error({ place }, "positions are gone with the volume, every existing object is new to the functions");
  return store;
}

/**
 * If a process ended between moving positions out of it and writing that to the Lease, the Lease is written now.
 */
async function shared(place: SharedPlace, options: StoreOptions, elector: Elector): Promise<SharedJournal> {
  const opened = await sharedJournals[place]({ ...options, isThere: placeOn(elector) === place }, elector);
  await correctLease(options, elector, opened, place);
  return opened;
}

async function correctLease(options: StoreOptions, elector: Elector, { movedTo }: SharedJournal, place: string) {
  if (movedTo === undefined || placeOn(elector) !== place) return;
  await elector.annotate({ [positionsKey]: movedTo });
  // The replica that has them takes the Lease.
  if (movedTo !== hereOf(options) && movedTo !== volumeOf(options))
    throw elsewhere(`the positions were moved to ${movedTo}`);
}

const placeOn = (elector: Elector): string => placeIn(elector.annotations).where;

/** What the Lease is to say. */
const hereOf = (options: StoreOptions): string => {
  const { store = "sqlite" } = options;
  return store === "sqlite" ? volumeOf(options) : store;
};

const volumeOf = ({ pod = "" }: StoreOptions): string => `sqlite/${pod}`;
