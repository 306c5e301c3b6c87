import { runtimeAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import { whole } from "../engine/state/sharding.ts";
import { Checkpoint, type StoreKind } from "../journal/checkpoint.ts";
import { elsewhere } from "../journal/journal.ts";
import { MemoryJournal } from "../journal/memory/journal.ts";
import { SlotCopy } from "../journal/nats/slot.ts";
import { readSecrets } from "../journal/secrets/read.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { LeaseApi } from "../lease/lease-api.ts";
import { alone, layoutOf } from "./layout.ts";
import { placeIn, shardingsIn, slotName } from "./location.ts";
import { type NatsStoreOptions, withNats } from "./open-journal.ts";
import type { SourceJournals } from "./sources.ts";

/** Timeout of one request, in milliseconds. */
const requestMs = 10_000;

interface ReadStoreOptions extends NatsStoreOptions {
  readonly transport: KubeTransport;
  readonly lease: LeaseApi;
}

/** Checkpoints that are read and not taken. Their runtime may continue meanwhile. */
export interface ReadJournals extends Pick<SourceJournals, "layout" | "journals"> {
  /** The place, as the Lease names it. */
  readonly place: string;
}

/**
 * Reads the checkpoints in Secrets, or on NATS, without changing them, and calls `work` with them. Each journal is the state at
 * one moment. `undefined` instead of journals: nothing was ever written.
 * @throws WatchfireError WF_BACKUP_CHANGING if they move meanwhile; others of the checkpoint section; what `work` throws
 */
export async function withStoredJournals<T>(
  store: Exclude<StoreKind, "sqlite">,
  options: ReadStoreOptions,
  work: (found: ReadJournals | undefined) => Promise<T>,
): Promise<T> {
  return store === "kubernetes" ? work(await inSecrets(options)) : onNats(options, work);
}

async function inSecrets({
  transport,
  namespace,
  account = runtimeAccount,
}: ReadStoreOptions): Promise<ReadJournals | undefined> {
  const found = await readSecrets({ transport, namespace, account });
  if (!found) return undefined;
  if (found.movedTo !== undefined)
    throw elsewhere(`the Secrets say that the checkpoints were moved to ${found.movedTo}`);
  return { place: "kubernetes", layout: alone, journals: [{ slot: 0, store: storeOf(new MemoryJournal(found.disk)) }] };
}

async function onNats<T>(options: ReadStoreOptions, work: (found: ReadJournals | undefined) => Promise<T>): Promise<T> {
  const read = async () => (await options.lease.get(requestMs))?.annotations ?? {};
  const annotations = await read();
  const { where, set, slots = 1 } = placeIn(annotations);
  if (where === "") return work(undefined);
  if (where !== "nats" && !where.startsWith("fleet/")) throw elsewhere(`the Lease says that they are at ${where}`);
  const shardings = shardingsIn(annotations);
  return withNats(options, async (nats) => {
    const journals = [];
    for (let slot = 0; slot < slots; slot++)
      journals.push({ slot, store: storeOf(await SlotCopy.read(nats, slotName(set, slot), options.clock)) });
    const layout = where === "nats" ? alone : layoutOf(slots, (name) => shardings.get(name) ?? whole);
    const done = await work({ place: where, layout, journals });
    const now = placeIn(await read());
    if (now.where !== where || now.set !== set)
      throw new WatchfireError("WF_BACKUP_CHANGING", { what: `they were at ${where}, and are at ${now.where}` });
    return done;
  });
}

const storeOf = (journal: MemoryJournal): Checkpoint => new Checkpoint(journal);
