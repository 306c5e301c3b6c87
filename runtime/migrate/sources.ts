import { runtimeAccount } from "../access/account.ts";
import type { WatchfireError } from "../base/errors.ts";
import { accountLabel } from "../catalog/names.ts";
import { whole } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { elsewhere, type PreviousEnd } from "../journal/journal.ts";
import { sweepSlots } from "../journal/nats/sweep.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { type Elector, lostError } from "../lease/elector.ts";
import { fleetLeases } from "../slots/fleet-leases.ts";
import { TakenFleet, type TakeOptions } from "../slots/taken-fleet.ts";
import { alone, type Layout, layoutOf } from "./layout.ts";
import { type JournalLocation, placeIn, positionsKey, setOfName, shardingsIn, slotName } from "./location.ts";
import { connectNats, isShared, type NatsStoreOptions, openShared, openSlot } from "./open-journal.ts";

/** Size of a slot's cache of bodies, in bytes. Each body is read once. */
const cacheBytes = 1024 * 1024;

/** A journal with some of the checkpoints. */
interface SourceJournal {
  readonly slot: number;
  readonly store: Checkpoint;
}

/** The journals that checkpoints are moved from. No other process writes to them. */
export interface SourceJournals {
  readonly layout: Layout;
  readonly journals: readonly SourceJournal[];
  /** Their set of slots, if they are on NATS. */
  readonly set: string | undefined;
  /** Resolves if no other process can have started to use them. Must be called just before the switch. @throws WF_LEASE_LOST */
  confirm(): Promise<void>;
  /** Records in them that the checkpoints have been moved to `place`, and deletes the checkpoints. */
  over(place: string): Promise<void>;
  close(): Promise<void>;
}

/** Options to find and open a runtime's checkpoints. */
export interface PlaceOptions extends NatsStoreOptions, Omit<TakeOptions, "leases" | "identity" | "log" | "waiting"> {
  /** The data folder. */
  readonly data: string;
  readonly transport: KubeTransport;
  /** Called with the reason for waiting, and the fault if it has a code; with `undefined` when the wait ends. */
  readonly waiting?: ((why: string | undefined, fault?: WatchfireError) => void) | undefined;
  /** The identity of this process, if there is an election. */
  readonly identity?: string | undefined;
}

/**
 * Opens the journals named by the held Lease. Waits for the replicas of a fleet to end. Returns `undefined` if the Lease names
 * another place now, or if an active replica is not waited for.
 * @throws WatchfireError of the checkpoint section; the signal's reason
 */
export async function openSources(
  options: PlaceOptions,
  elector: Elector,
  signal: AbortSignal,
): Promise<SourceJournals | undefined> {
  const place = placeIn(elector.annotations);
  const { where, set, slots } = place;
  if (slots !== undefined) return openFleet(options, elector, place, slots, signal);
  if (isShared(where)) {
    const journal = await openShared(where, { ...options, isThere: true, onLost: () => {} }, elector);
    const { movedTo } = journal;
    const over = (to: string) => journal.moveTo(to);
    if (movedTo === undefined) return ofOne(new Checkpoint(journal), over, where === "nats" ? set : undefined);
    // The process that moved them ended before it could update the Lease.
    await journal.close(false);
    await elector.annotate({ [positionsKey]: movedTo });
    return undefined;
  }
  const nothing = async () => undefined;
  if (new DataFolder(options.data, options.clock).holdsPositions)
    return ofOne(new Checkpoint(new SqliteJournal({ folder: options.data, maintenance: true })), nothing, undefined);
  if (where !== "" && !where.startsWith("sqlite/")) {
    throw elsewhere(`checkpoints are at ${where}, which this version does not know: start the one that put them there`);
  }
  return { layout: alone, journals: [], set: undefined, confirm: nothing, over: nothing, close: nothing };
}

const ofOne = (store: Checkpoint, over: SourceJournals["over"], set: string | undefined): SourceJournals => ({
  layout: alone,
  journals: [{ slot: 0, store }],
  set,
  confirm: async () => undefined,
  over,
  // If the move fails, the next process to open it must still see how the last run ended.
  close: () => store.close(store.previousEnd === "clean").catch(() => undefined),
});

async function openFleet(
  options: PlaceOptions,
  elector: Elector,
  { set, carried }: JournalLocation,
  slots: number,
  signal: AbortSignal,
): Promise<SourceJournals | undefined> {
  const shardings = shardingsIn(elector.annotations);
  const { transport, namespace, account = runtimeAccount, identity } = options;
  if (identity === undefined) throw lostError("it was lost before the store was open");
  const leases = fleetLeases(transport, { namespace, account, label: accountLabel(account) });
  const connection = await connectNats(options);
  const journals: SourceJournal[] = [];
  const closeAll = async (isOver: boolean) => {
    for (const { store } of journals.splice(0)) {
      const { previousEnd: end } = store;
      // A slot that never had rows counts as clean.
      await store.close(!isOver && (end === "clean" || end === "new")).catch(() => undefined);
    }
  };
  let taken: TakenFleet | undefined;
  const close = async () => {
    await closeAll(false);
    await taken?.release();
    await connection.close();
  };
  try {
    taken = await TakenFleet.take({ ...options, identity, leases }, slots, signal);
    for (const held of taken?.slots ?? []) {
      signal.throwIfAborted();
      const of = { slot: slotName(set, held.slot), carried: carried[held.slot], cacheBytes, onLost: () => {} };
      journals.push({
        slot: held.slot,
        store: new Checkpoint(await openSlot({ ...options, connection, ...of }, held)),
      });
    }
  } catch (error) {
    await close();
    throw error;
  }
  if (!taken) {
    await close();
    return undefined;
  }
  const fleet = taken;
  return {
    layout: layoutOf(slots, (name) => shardings.get(name) ?? whole),
    journals,
    set,
    confirm: () => fleet.confirm(),
    over: async () => {
      await closeAll(true);
      await sweepSlots(connection, (name) => setOfName(name) === set);
    },
    close,
  };
}

const gravity: readonly PreviousEnd[] = ["new", "clean", "killed", "power-loss"];

/** Returns how the last run ended: the worst end of all journals. */
export const endOf = ({ journals }: SourceJournals): PreviousEnd =>
  gravity[Math.max(0, ...journals.map(({ store }) => gravity.indexOf(store.previousEnd)))] ?? "new";
