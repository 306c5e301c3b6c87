import { runtimeAccount } from "../access/account.ts";
import { spreadsNote } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { elsewhere } from "../journal/journal.ts";
import { DataFolder } from "../journal/sqlite/data-folder.ts";
import { type Elector, lostError } from "../lease/elector.ts";
import { awaited } from "../slots/taken-fleet.ts";
import { carryOver } from "./carry-over.ts";
import { annotationsOf, placeIn, setOf } from "./journal-location.ts";
import { alone, natureOf, partOf } from "./layout.ts";
import { connectNats } from "./open-nats.ts";
import { endOf, openFormer, type PreviousLayout } from "./previous-layout.ts";
import { sharedJournals } from "./shared-journals.ts";
import type { StoreOptions } from "./store-options.ts";

/** Of functions that come together in one store it does not matter what they are like. */
const nature = natureOf([]);

/**
 * Brings a fleet's positions together in the store of a runtime alone, which holds the runtime's Lease, and gives that
 * store. It waits until no replica of the fleet lives. `here`: the place, as the Lease is to say it.
 * @throws WatchfireError of the checkpoint section, WF_LEASE_LOST; the signal's reason
 */
export async function leaveFleet(
  options: StoreOptions,
  elector: Elector,
  here: string,
  signal: AbortSignal,
): Promise<Checkpoint> {
  const { account = runtimeAccount, identity, log } = options;
  const { where } = placeIn(elector.annotations);
  const { fence } = elector;
  if (!fence || identity === undefined) throw lostError("it was lost before the store was open");
  const set = setOf(fence);
  const waiting = (why: string | undefined) => options.waiting?.(why && awaited(why).message);
  const connection = await connectNats(options);
  try {
    const former = await openFormer({ ...options, account, identity, waiting }, elector, connection, signal);
    if (!former) throw elsewhere("the Lease names another place than a moment ago");
    let opened: Checkpoint | undefined;
    try {
      opened = await gathered({ ...options, account }, former, elector, set, signal);
      await former.confirm();
      await elector.annotate({ ...annotationsOf({ where: here, set, carried: {} }), ...spreadsNote(new Map()) });
      log.info({ from: where, to: here }, "positions carried over");
      await former.over(here).catch((error: unknown) => {
        log.warn({ error: String(error) }, "the fleet's slots were not cleared");
      });
    } catch (error) {
      await opened?.close(false);
      throw error;
    } finally {
      await former.close();
    }
    return opened ?? new DataFolder(options.data, options.clock).open();
  } finally {
    await connection.close();
  }
}

/** Copies all into the store of this kind. Undefined: into the data folder, which is to be opened yet. */
async function gathered(
  options: StoreOptions & { readonly account: string },
  former: PreviousLayout,
  elector: Elector,
  set: string,
  signal: AbortSignal,
): Promise<Checkpoint | undefined> {
  const end = endOf(former.sources);
  const copy = async (to: Checkpoint) => {
    for (const { slot, store } of former.sources) {
      const part = partOf({ from: former.layout, source: slot, to: alone, target: 0 }, nature);
      await carryOver(store, to, { part, signal });
    }
  };
  const { store = "sqlite" } = options;
  if (store === "sqlite") {
    await new DataFolder(options.data, options.clock).fill(end, copy);
    return undefined;
  }
  const journal = await sharedJournals[store]({ ...options, set }, elector);
  try {
    await journal.clear(end);
    const to = new Checkpoint(journal);
    await copy(to);
    await journal.syncWhole();
    return to;
  } catch (error) {
    await journal.close(false);
    throw error;
  }
}
