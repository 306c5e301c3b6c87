import { accountLabel } from "../catalog/names.ts";
import { spreadsIn, whole } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import type { PreviousEnd } from "../journal/journal.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { sweepSlots } from "../journal/nats/sweep.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Elector } from "../lease/elector.ts";
import type { Logger } from "../observe/log.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import { TakenFleet, type TakeOptions } from "../slots/taken-fleet.ts";
import { type JournalLocation, placeIn, positionsKey, setOfName, slotName } from "./journal-location.ts";
import { alone, type Layout } from "./layout.ts";
import { openSlot } from "./open-nats.ts";
import { isShared, sharedJournals } from "./shared-journals.ts";

/** Bodies of a slot that are read from memory, in bytes: each is read once. */
const cacheBytes = 1024 * 1024;

/** One of the stores that positions lie in. */
interface PreviousStore {
  readonly slot: number;
  readonly store: Checkpoint;
}

/** The stores that positions are carried from: nobody else writes to them. */
export interface PreviousLayout {
  readonly layout: Layout;
  readonly sources: readonly PreviousStore[];
  /** Where they are on NATS, their set of slots. */
  readonly set: string | undefined;
  /** Resolves where nobody else can have come to work with them. To be asked just before the place changes. @throws WF_LEASE_LOST */
  confirm(): Promise<void>;
  /** Says that they are in another place from now on, and forgets them. */
  over(place: string): Promise<void>;
  close(): Promise<void>;
}

interface PreviousLayoutOptions extends Omit<TakeOptions, "leases"> {
  readonly data: string;
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account: string;
  readonly cluster: string | undefined;
  readonly log: Logger;
}

/**
 * Opens what another runtime has left, under the Lease that is held. A fleet's replicas are waited for. Undefined where
 * the Lease says another place now, or a replica lives that is not waited for.
 * @throws WatchfireError of the checkpoint section; the signal's reason
 */
export async function openFormer(
  options: PreviousLayoutOptions,
  elector: Elector,
  connection: Nats,
  signal: AbortSignal,
): Promise<PreviousLayout | undefined> {
  const place = placeIn(elector.annotations);
  const { where, set, slots } = place;
  if (slots !== undefined) return ofFleet(options, elector, connection, place, slots, signal);
  if (isShared(where)) {
    const opened = await sharedJournals[where]({ ...options, connection, isThere: true, onLost: () => {} }, elector);
    const former = ofOne(new Checkpoint(opened), (place) => opened.moveTo(place), where === "nats" ? set : undefined);
    if (opened.movedTo === undefined) return former;
    await former.close();
    await elector.annotate({ [positionsKey]: opened.movedTo });
    return undefined;
  }
  const folder = new DataFolder(options.data, options.clock);
  if (folder.holdsPositions) {
    const store = new Checkpoint(new SqliteJournal({ folder: options.data, maintenance: true }));
    return ofOne(store, async () => undefined, undefined);
  }
  // Nobody has ever kept any.
  const none = async () => undefined;
  return where === ""
    ? { layout: alone, sources: [], set: undefined, confirm: none, over: none, close: none }
    : undefined;
}

const ofOne = (store: Checkpoint, over: PreviousLayout["over"], set: string | undefined): PreviousLayout => ({
  layout: alone,
  sources: [{ slot: 0, store }],
  set,
  confirm: async () => undefined,
  over,
  // How the last run ended is still to be known where this was in vain.
  close: () => store.close(store.previousEnd === "clean").catch(() => undefined),
});

/** The slots of a fleet that is gone. */
async function ofFleet(
  options: PreviousLayoutOptions,
  elector: Elector,
  connection: Nats,
  { set, carried }: JournalLocation,
  slots: number,
  signal: AbortSignal,
): Promise<PreviousLayout | undefined> {
  const spreads = spreadsIn(elector.annotations);
  const { transport, namespace, account } = options;
  const leases = fleetLeases(transport, { namespace, account, label: accountLabel(account) });
  const taken = await TakenFleet.take({ ...options, leases }, slots, signal);
  if (!taken) return undefined;
  const sources: PreviousStore[] = [];
  const closeAll = async (isOver: boolean) => {
    for (const { store } of sources.splice(0)) {
      await store.close(!isOver && isIntact(store.previousEnd)).catch(() => undefined);
    }
  };
  const former: PreviousLayout = {
    layout: { slots, spreadOf: (name) => spreads.get(name) ?? whole },
    sources,
    set,
    confirm: () => taken.confirm(),
    over: async () => {
      await closeAll(true);
      await sweepSlots(connection, (name) => setOfName(name) === set);
    },
    close: async () => {
      await closeAll(false);
      await taken.release();
    },
  };
  try {
    for (const held of taken.slots) {
      signal.throwIfAborted();
      const of = { slot: slotName(set, held.slot), carried: carried[held.slot], cacheBytes, onLost: () => {} };
      const journal = await openSlot({ ...options, connection, ...of }, held);
      sources.push({ slot: held.slot, store: new Checkpoint(journal) });
    }
    return former;
  } catch (error) {
    await former.close();
    throw error;
  }
}

/** Of a slot: one that never had anything was not killed. */
const isIntact = (end: PreviousEnd): boolean => end === "clean" || end === "new";

const gravity: readonly PreviousEnd[] = ["new", "clean", "killed", "power-loss"];

/** How the last run of all of them ended: as the worst of them. */
export const endOf = (sources: readonly PreviousStore[]): PreviousEnd =>
  gravity[Math.max(0, ...sources.map(({ store }) => gravity.indexOf(store.previousEnd)))] ?? "new";
