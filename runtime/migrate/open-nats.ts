import { runtimeAccount } from "../access/account.ts";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Nats, type NatsOptions } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { JetstreamJournal } from "../journal/nats/journal.ts";
import type { Witness } from "../journal/nats/slot.ts";
import type { Elector } from "../lease/elector.ts";
import type { Logger } from "../observe/log.ts";
import { claimStreams } from "./claim-streams.ts";
import { placeIn, slotName } from "./journal-location.ts";

/** Which NATS, and how it is reached. */
export type NatsPlace = Omit<NatsOptions, "name" | "cluster" | "log">;

/** On the Lease: how far the slot's log was when it was looked at last, and which streams it was in. */
const markKey = "watchfire.dev/nats-";
/** A mark, and nothing else that begins so. */
const isMark = /^watchfire\.dev\/nats-(?:.+_)?\d+$/;

export interface NatsStoreOptions {
  /** Whether positions are to be there. Default false. */
  readonly isThere?: boolean;
  /** Default: one of its own, which closes with it. */
  readonly connection?: Nats;
  /** The set of slots; default: the one that the Lease names. */
  readonly set?: string;
  readonly nats?: NatsPlace | undefined;
  readonly namespace: string;
  readonly account?: string | undefined;
  /** The cluster's uid, where it is known: positions of another are refused, and stay as they are. */
  readonly cluster: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onLost: (error: WatchfireError) => void;
}

/** For what waits and dead letters, and for bodies in memory, of all slots together, in bytes; each has at least the least. */
const roomOfAll = 512 * 1024 * 1024;
const leastRoom = 8 * 1024 * 1024;

/** The same of one slot. */
export const roomOfSlot = (slots: number): number => Math.max(leastRoom, roomOfAll / slots);

/** A Lease that is held, and that says whose turn it is. */
export type HeldLease = Pick<Elector, "fence" | "annotations" | "annotate">;

/** All of a runtime's positions are in one slot. */
const onlySlot = 0;

/**
 * Opens the journal on NATS of a runtime alone, under the fence that is held.
 * @throws WatchfireError of the checkpoint section
 */
export async function openNats(options: NatsStoreOptions, elector: Elector): Promise<JetstreamJournal> {
  const { fence } = elector;
  if (!fence) throw new WatchfireError("WF_LEASE_LOST", { what: "it was lost before the store was open" });
  const slot = slotName(options.set ?? placeIn(elector.annotations).set, onlySlot);
  const { connection } = options;
  if (connection) return openSlot({ ...options, connection, slot }, elector);
  const nats = await connectNats(options);
  try {
    const onClosed = () => nats.close();
    return await openSlot({ ...options, connection: nats, slot, onClosed }, elector);
  } catch (error) {
    await nats.close();
    throw error;
  }
}

/**
 * Connects to a runtime's streams, and makes those that are not there. They are this cluster's then.
 * @throws WatchfireError of the checkpoint section
 */
export async function connectNats(options: Omit<NatsStoreOptions, "onLost">): Promise<Nats> {
  const { nats: place, namespace, account = runtimeAccount, cluster, clock, log } = options;
  if (!place) throw new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what: "they are on NATS, and --nats names none" });
  const nats = await Nats.connect({ ...place, name: streamName(namespace, account), cluster, log });
  try {
    await claimStreams(nats, clock, log);
    return nats;
  } catch (error) {
    await nats.close();
    throw natsFault(error, "it could not be read whose positions are there");
  }
}

interface SlotStoreOptions extends Omit<NatsStoreOptions, "cluster" | "set"> {
  readonly connection: Nats;
  readonly slot: string;
  /** Default: the connection stays open. */
  readonly onClosed?: () => Promise<void>;
  /** Its mark when positions were carried into it. Default: nobody carried any. */
  readonly carried?: string | undefined;
  /** In bytes, as the store has them. */
  readonly room?: number;
  readonly cacheBytes?: number;
}

/** Opens the store of one slot. @throws WatchfireError of the checkpoint section */
export async function openSlot(
  {
    connection: nats,
    slot,
    isThere = false,
    carried,
    clock,
    log,
    onLost,
    onClosed,
    room,
    cacheBytes,
  }: SlotStoreOptions,
  held: HeldLease,
): Promise<JetstreamJournal> {
  return JetstreamJournal.open({
    nats,
    slot,
    fence: held.fence,
    witness: onLease(held, slot, carried),
    isThere,
    clock,
    log,
    onLost,
    ...(onClosed && { onClosed }),
    ...(room !== undefined && { room }),
    ...(cacheBytes !== undefined && { cacheBytes }),
  });
}

/** What a runtime's streams and subjects are called after. No account's name has `_`, and no namespace's. */
const streamName = (namespace: string, account: string): string => `${namespace}_${account.replaceAll(".", "_")}`;

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
