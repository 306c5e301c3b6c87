import { runtimeAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import type { SharedJournal } from "../journal/journal.ts";
import { Nats, type NatsOptions } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { JetstreamJournal, type JetstreamJournalOptions } from "../journal/nats/journal.ts";
import type { Witness } from "../journal/nats/slot.ts";
import { SecretsJournal, type SecretsJournalOptions } from "../journal/secrets/journal.ts";
import type { Elector } from "../lease/elector.ts";
import type { Logger } from "../observe/log.ts";
import { placeIn, slotName } from "./location.ts";
import { claimStreams } from "./nats-sets.ts";

/** Which NATS, and how it is reached. */
export type NatsPlace = Omit<NatsOptions, "name" | "cluster" | "log">;

export interface NatsStoreOptions {
  readonly nats?: NatsPlace | undefined;
  readonly namespace: string;
  readonly account?: string | undefined;
  /** The cluster's uid, where it is known: positions of another are refused, and stay as they are. */
  readonly cluster: string | undefined;
  readonly clock: JetstreamJournalOptions["clock"];
  readonly log: Logger;
}

interface SharedOptions extends NatsStoreOptions, Pick<SecretsJournalOptions, "transport" | "onLost"> {
  /** Whether positions are to be there. Default false. */
  readonly isThere?: boolean;
  /** The set of slots; default: the one that the Lease names. */
  readonly set?: string;
}

/** Journals that every replica reaches, as the Lease and `--store` name them. */
export type SharedPlace = Exclude<StoreKind, "sqlite">;

/** How each is opened, under the fence that is held. */
const sharedJournals = {
  kubernetes: async ({ account = runtimeAccount, ...options }, { fence }) => {
    if (!fence) throw notHeld();
    return SecretsJournal.open({ ...options, account, fence });
  },
  nats: async (options, elector) => {
    if (!elector.fence) throw notHeld();
    const connection = await connectNats(options);
    try {
      // All of a runtime's positions are in one slot.
      const slot = slotName(options.set ?? placeIn(elector.annotations).set, 0);
      return await openSlot({ ...options, connection, slot, onClosed: () => connection.close() }, elector);
    } catch (error) {
      await connection.close();
      throw error;
    }
  },
} satisfies Record<SharedPlace, (options: SharedOptions, elector: Elector) => Promise<SharedJournal>>;

const notHeld = (): WatchfireError =>
  new WatchfireError("WF_LEASE_LOST", { what: "it was lost before the store was open" });

export const isShared = (place: string): place is SharedPlace => Object.hasOwn(sharedJournals, place);

/** Opens a journal that every replica reaches, of a runtime alone. @throws WatchfireError of the checkpoint section */
export const openShared = (place: SharedPlace, options: SharedOptions, elector: Elector): Promise<SharedJournal> =>
  sharedJournals[place](options, elector);

/**
 * Connects to a runtime's streams, and makes those that are not there. They are this cluster's then.
 * @throws WatchfireError of the checkpoint section
 */
export async function connectNats(options: NatsStoreOptions): Promise<Nats> {
  const { nats: place, namespace, account = runtimeAccount, cluster, clock, log } = options;
  if (!place) throw new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what: "they are on NATS, and --nats names none" });
  // No account's name has `_`, and no namespace's.
  const name = `${namespace}_${account.replaceAll(".", "_")}`;
  const nats = await Nats.connect({ ...place, name, cluster, log });
  try {
    await claimStreams(nats, clock, log);
    return nats;
  } catch (error) {
    await nats.close();
    throw natsFault(error, "it could not be read whose positions are there");
  }
}

/** Connects for the length of some work. @throws as `connectNats`; what the work throws */
export async function withNats<T>(options: NatsStoreOptions, work: (nats: Nats) => Promise<T>): Promise<T> {
  const nats = await connectNats(options);
  try {
    return await work(nats);
  } finally {
    await nats.close();
  }
}

/** For what waits and dead letters, and for bodies in memory, of all slots together, in bytes; each has at least the least. */
const roomOfAll = 512 * 1024 * 1024;
const leastRoom = 8 * 1024 * 1024;

/** The same of one slot. */
export const roomOfSlot = (slots: number): number => Math.max(leastRoom, roomOfAll / slots);

/** A Lease that is held, and that says whose turn it is. */
type HeldLease = Pick<Elector, "fence" | "annotations" | "annotate">;

interface SlotStoreOptions extends Omit<JetstreamJournalOptions, "nats" | "fence" | "witness"> {
  readonly connection: Nats;
  /** Its mark when positions were copied into it. Default: nobody copied any. */
  readonly carried?: string | undefined;
}

/** Opens the journal of one slot. @throws WatchfireError of the checkpoint section */
export const openSlot = (
  { connection: nats, carried, ...options }: SlotStoreOptions,
  held: HeldLease,
): Promise<JetstreamJournal> =>
  JetstreamJournal.open({ ...options, nats, fence: held.fence, witness: onLease(held, options.slot, carried) });

/** On the Lease: how far the slot's log was when it was looked at last, and which streams it was in. */
const markKey = "watchfire.dev/nats-";
/** A mark, and nothing else that begins so. */
const isMark = /^watchfire\.dev\/nats-(?:.+_)?\d+$/;

/**
 * The Lease outlives NATS, and whoever holds it may write it. The marks of other sets go: a Lease stands for one slot, and
 * positions of it that are elsewhere by now count no more.
 */
function onLease(elector: HeldLease, slot: string, carried = ""): Witness {
  const key = `${markKey}${slot}`;
  return {
    read: () => elector.annotations[key] ?? carried,
    write: (mark) => {
      const others = Object.keys(elector.annotations).filter((other) => other !== key && isMark.test(other));
      return elector.annotate({ ...Object.fromEntries(others.map((other) => [other, undefined])), [key]: mark });
    },
  };
}
