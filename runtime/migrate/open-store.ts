import { runtimeAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import type { CheckpointStore, StoreKind } from "../journal/checkpoint.ts";
import { JetstreamStore } from "../journal/nats/journal.ts";
import { KubernetesStore } from "../journal/secrets/journal.ts";
import { SqliteStore } from "../journal/sqlite/journal.ts";
import type { Elector, Eligible } from "../lease/elector.ts";
import { carryOver } from "./carry-over.ts";
import { DataFolder } from "./data-folder.ts";
import { elsewhere } from "./elsewhere.ts";
import { findPlace } from "./found-journal.ts";
import { placeIn, positionsKey } from "./journal-location.ts";
import { leaveFleet } from "./leave-fleet.ts";
import { type NatsPlace, openNats } from "./open-nats.ts";
import type { StoreOptions } from "./store-options.ts";
import { untilReached } from "./until-reached.ts";

/** A store that every replica reaches. */
type RemoteStore = KubernetesStore | JetstreamStore;

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
    if (["", "kubernetes", "nats", `sqlite/${pod}`].includes(where)) return undefined;
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
): Promise<CheckpointStore> {
  if (!elector) return new DataFolder(options.data, options.clock).open();
  const { store = "sqlite" } = options;
  const here = hereOf(options);
  const open = { sqlite: openFolder, kubernetes: openSecrets, nats: openStream }[store];
  await untilReached(options, signal, () => replace(options, elector, signal));
  const opened = await untilReached(options, signal, () => {
    const isFleet = placeIn(elector.annotations).slots !== undefined;
    return isFleet ? leaveFleet(options, elector, here, signal) : open(options, elector);
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
  const store = await secrets(options, elector);
  await store.close(store.previousEnd === "clean");
  return !store.isBlank && store.movedTo === undefined;
}

async function openSecrets(options: StoreOptions, elector: Elector): Promise<KubernetesStore> {
  return filled(options, elector, await secrets(options, elector));
}

async function openStream(options: StoreOptions, elector: Elector): Promise<JetstreamStore> {
  return filled(options, elector, await stream(options, elector));
}

/** With the positions in it. @throws WatchfireError, and closes it */
async function filled<T extends RemoteStore>(options: StoreOptions, elector: Elector, opened: T): Promise<T> {
  try {
    await fill(options, elector, opened);
    return opened;
  } catch (error) {
    await opened.close(false);
    throw error;
  }
}

/** Brings positions that are elsewhere into a store that every replica reaches. */
async function fill(options: StoreOptions, elector: Elector, opened: RemoteStore): Promise<void> {
  const folder = new DataFolder(options.data, options.clock);
  const place = placeOn(elector);
  const to = hereOf(options);
  const fault = (what: string) => elsewhere(`${what}; the Lease says ${place || "nothing of positions"}`);
  if (place === to) return;
  if (place === "kubernetes" || place === "nats") {
    const from = await (place === "nats" ? stream(options, elector) : secrets(options, elector));
    return moved(from, async () => {
      // It may say of itself that they were moved, and the Lease does now.
      if (placeOn(elector) !== place) return fill(options, elector, opened);
      await copy(from, opened, options);
      await from.moveTo(to);
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
  const from = new SqliteStore({ folder: options.data, maintenance: true });
  try {
    await copy(from, opened, options);
  } finally {
    await from.close(false);
  }
}

async function copy(from: CheckpointStore, to: RemoteStore, { log, store }: StoreOptions): Promise<void> {
  await to.clear(from.previousEnd);
  await carryOver(from, to);
  await (to instanceof KubernetesStore ? to.syncWhole() : to.sync());
  log.info({ from: nameOf(from), to: store }, "positions carried over");
}

/** Moves positions out of it, and closes it. Where that is in vain, how the last run had ended is still to be known. */
async function moved(from: RemoteStore, move: () => Promise<void>): Promise<void> {
  try {
    await move();
  } catch (error) {
    await from.close(from.previousEnd === "clean").catch(() => undefined);
    throw error;
  }
  await from.close(false);
}

const nameOf = (store: CheckpointStore): StoreKind =>
  store instanceof KubernetesStore ? "kubernetes" : store instanceof JetstreamStore ? "nats" : "sqlite";

async function openFolder(options: StoreOptions, elector: Elector): Promise<CheckpointStore> {
  const folder = new DataFolder(options.data, options.clock);
  const here = volumeOf(options);
  const place = placeOn(elector);
  if (place === "kubernetes" || place === "nats") {
    const from = await (place === "nats" ? stream(options, elector) : secrets(options, elector));
    await moved(from, async () => {
      if (placeOn(elector) !== place) return;
      await folder.fill(from.previousEnd, (to) => carryOver(from, to));
      await from.moveTo(here);
      options.log.info({ from: nameOf(from), to: "sqlite" }, "positions carried over");
    });
  }
  const areGone = placeOn(elector) === here && !folder.holdsPositions;
  const store = folder.open();
  if (areGone)
    options.log.error({ place }, "positions are gone with the volume, every existing object is new to the functions");
  return store;
}

/**
 * The Secrets, under the fence that is held. Where a process ended after it had moved positions out of them and before the
 * Lease said so, the Lease says it now.
 */
async function secrets(options: StoreOptions, elector: Elector): Promise<KubernetesStore> {
  const { fence } = elector;
  if (!fence) throw new WatchfireError("WF_LEASE_LOST", { what: "it was lost before the store was open" });
  const isThere = placeOn(elector) === "kubernetes";
  const opened = await KubernetesStore.open({ ...options, account: options.account ?? runtimeAccount, fence, isThere });
  await correctLease(options, elector, opened, "kubernetes");
  return opened;
}

/** The same of the stream on NATS. */
async function stream(options: StoreOptions, elector: Elector): Promise<JetstreamStore> {
  const opened = await openNats({ ...options, isThere: placeOn(elector) === "nats" }, elector);
  await correctLease(options, elector, opened, "nats");
  return opened;
}

async function correctLease(options: StoreOptions, elector: Elector, { movedTo }: RemoteStore, place: string) {
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
