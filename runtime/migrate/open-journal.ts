import { runtimeAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import type { SharedJournal } from "../journal/journal.ts";
import { Nats, type NatsOptions } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { JetstreamJournal, type JetstreamJournalOptions } from "../journal/nats/journal.ts";
import type { Witness } from "../journal/nats/slot.ts";
import { SecretsJournal, type SecretsJournalOptions } from "../journal/secrets/journal.ts";
import { type Elector, lostError } from "../lease/elector.ts";
import type { FenceOptions } from "../lease/lease-record.ts";
import type { Logger } from "../observe/log.ts";
import { placeIn, slotName } from "./location.ts";
import { claimStreams } from "./nats-sets.ts";

/** The NATS servers and how to connect to them. */
export type NatsPlace = Omit<NatsOptions, "name" | "cluster" | "log">;

export interface NatsStoreOptions {
  readonly nats?: NatsPlace | undefined;
  readonly namespace: string;
  readonly account?: string | undefined;
  /** The cluster's uid, if known. Checkpoints of another cluster are refused and left unchanged. */
  readonly cluster: string | undefined;
  readonly clock: JetstreamJournalOptions["clock"];
  readonly log: Logger;
}

interface SharedOptions extends NatsStoreOptions, Pick<SecretsJournalOptions, "transport" | "onLost"> {
  /** True if the journal must hold checkpoints. Default false. */
  readonly isThere?: boolean;
  /** The set of slots. Default: the one that the Lease names. */
  readonly set?: string;
}

/** Journals that every replica reaches, as named by the Lease and by `--store`. */
export type SharedPlace = Exclude<StoreKind, "sqlite">;

/** Opens each kind of journal under the held fence. */
const sharedJournals = {
  kubernetes: async ({ account = runtimeAccount, ...options }, elector) =>
    SecretsJournal.open({ ...options, account, ...fenceOptions(elector, options.log) }),
  nats: async (options, elector) => {
    const connection = await connectNats(options);
    try {
      // A single runtime has all checkpoints in one slot.
      const slot = slotName(options.set ?? placeIn(elector.annotations).set, 0);
      return await openSlot({ ...options, connection, slot, onClosed: () => connection.close() }, elector);
    } catch (error) {
      await connection.close();
      throw error;
    }
  },
} satisfies Record<SharedPlace, (options: SharedOptions, elector: Elector) => Promise<SharedJournal>>;

/**
 * Returns the fence of a held Lease. The Lease is raised above a store's record, because otherwise no holder could open the store
 * after a restore of etcd. @throws WatchfireError WF_LEASE_LOST
 */
function fenceOptions(held: Omit<HeldLease, "annotations" | "annotate">, log: Logger): FenceOptions {
  const { fence } = held;
  if (!fence) throw lostError("it was lost before the store was open");
  const raise = async (above: number) => {
    const raised = await held.raise(above);
    const what = "Lease raised above the number in the store: etcd was probably restored from a backup";
    if (raised) log.warn({ before: fence.number, recorded: above, fence: raised.number }, what);
    return raised;
  };
  return { fence, raise, holds: () => held.holds };
}

export const isShared = (place: string): place is SharedPlace => Object.hasOwn(sharedJournals, place);

/** Opens a journal that every replica reaches, for a single runtime. @throws WatchfireError of the checkpoint section */
export const openShared = (place: SharedPlace, options: SharedOptions, elector: Elector): Promise<SharedJournal> =>
  sharedJournals[place](options, elector);

/**
 * Connects to a runtime's streams, creates missing ones, and marks them as this cluster's.
 * @throws WatchfireError of the checkpoint section
 */
export async function connectNats(options: NatsStoreOptions): Promise<Nats> {
  const { nats: place, namespace, account = runtimeAccount, cluster, clock, log } = options;
  if (!place) throw new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what: "they are on NATS, and --nats is missing" });
  // Neither names of accounts nor of namespaces contain `_`.
  const name = `${namespace}_${account.replaceAll(".", "_")}`;
  const nats = await Nats.connect({ ...place, name, cluster, log });
  try {
    await claimStreams(nats, clock, log);
    return nats;
  } catch (error) {
    await nats.close();
    throw natsFault(error, "the owner of the checkpoints there could not be read");
  }
}

/** Connects for the duration of `work`. @throws as `connectNats`; what `work` throws */
export async function withNats<T>(options: NatsStoreOptions, work: (nats: Nats) => Promise<T>): Promise<T> {
  const nats = await connectNats(options);
  try {
    return await work(nats);
  } finally {
    await nats.close();
  }
}

/**
 * Limit, in bytes, of waiting events and dead letters of all slots together, and of their cached bodies. Each slot has at least
 * `leastRoom`.
 */
const roomOfAll = 512 * 1024 * 1024;
const leastRoom = 8 * 1024 * 1024;

/** Returns the limit of one slot. */
export const roomOfSlot = (slots: number): number => Math.max(leastRoom, roomOfAll / slots);

/** A held Lease. */
type HeldLease = Pick<Elector, "fence" | "holds" | "annotations" | "annotate" | "raise">;

interface SlotStoreOptions
  extends Omit<JetstreamJournalOptions, "nats" | "fence" | "raise" | "holds" | "witness" | "log"> {
  readonly log: Logger;
  readonly connection: Nats;
  /** Its mark when checkpoints were moved into it. Default: they were not. */
  readonly carried?: string | undefined;
}

/** Opens the journal of one slot. @throws WatchfireError of the checkpoint section */
export const openSlot = async (
  { connection: nats, carried, ...options }: SlotStoreOptions,
  held: HeldLease,
): Promise<JetstreamJournal> => {
  const witness = onLease(held, options.slot, carried);
  return JetstreamJournal.open({ ...options, nats, ...fenceOptions(held, options.log), witness });
};

/** Prefix of a slot's mark on the Lease: the last known progress of its log, and the streams' identity. */
const markKey = "watchfire.dev/nats-";
/** Matches the keys of marks only. */
const isMark = /^watchfire\.dev\/nats-(?:.+_)?\d+$/;

/**
 * Keeps a slot's mark on the Lease, which outlives NATS. Deletes marks of other sets, because a Lease stands for one slot, whose
 * checkpoints elsewhere are no longer valid.
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
