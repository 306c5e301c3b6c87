import type { Clock } from "../base/clock.ts";
import { isAsAsked, type Sharding, spreadOf } from "../engine/state/sharding.ts";
import type { Nats } from "../journal/nats/connection.ts";
import type { Fence } from "../lease/elector.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { Logger } from "../observe/log.ts";
import { layoutOf, placesOf } from "./layout.ts";
import { type JournalLocation, setOf, slotName } from "./location.ts";
import { fillJournal } from "./move.ts";
import { sweepSets } from "./nats-sets.ts";
import { openSlot, roomOfSlot } from "./open-journal.ts";
import { endOf, type SourceJournals } from "./sources.ts";

/** Bodies that are read from memory while a slot is filled, in bytes: each is written once. */
const cacheBytes = 1024 * 1024;

interface FillOptions {
  readonly connection: Nats;
  /** How many slots the fleet has. */
  readonly slots: number;
  /** The cluster's uid, where it is known. */
  readonly cluster: string | undefined;
  /** The functions as they are to run. */
  readonly manifests: readonly FunctionManifest[];
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Copies the positions of these functions into slots of a new set, which is named after the term that the fence stands for:
 * nobody before or after it writes there. If this process ends on the way, the sources stand as they did, and the next to
 * copy sweeps this set away. Returns the set, the mark of each slot, and the sharding of functions in several slots.
 * @throws WatchfireError; the signal's reason
 */
export async function fillSlots(
  { connection, slots, cluster, manifests, clock, log }: FillOptions,
  sources: SourceJournals,
  names: ReadonlySet<string>,
  fence: Fence,
  signal: AbortSignal,
): Promise<Pick<JournalLocation, "set" | "carried"> & { readonly spreads: ReadonlyMap<string, Sharding> }> {
  const set = setOf(fence);
  await sweepSets(connection, clock, cluster, { set, from: sources.set });
  const asked = new Map(manifests.map((manifest) => [manifest.name, spreadOf(manifest)]));
  const spreadNow = (name: string): Sharding => {
    const [wanted, had] = [asked.get(name), sources.layout.spreadOf(name)];
    return wanted && !isAsAsked(wanted, had) ? wanted : had;
  };
  const layout = layoutOf(slots, spreadNow, manifests);
  const end = endOf(sources);
  const carried: Record<string, string> = {};
  for (const slot of new Set([...names].flatMap((name) => placesOf(layout, name)))) {
    signal.throwIfAborted();
    const annotate = async (marks: Readonly<Record<string, string | undefined>>) => {
      carried[slot] = Object.values(marks).at(-1) ?? "";
    };
    const of = { slot: slotName(set, slot), room: roomOfSlot(slots), cacheBytes, onLost: () => {} };
    const journal = await openSlot({ connection, clock, log, ...of }, { fence, annotations: {}, annotate });
    let isDone = false;
    try {
      await fillJournal(journal, sources, { layout, slot }, signal);
      isDone = true;
    } finally {
      // Whoever opens it next learns how the last run had ended.
      await journal.close(isDone && end === "clean");
    }
  }
  const spreads = new Map([...names].map((name) => [name, spreadNow(name)]));
  return { set, carried, spreads: new Map([...spreads].filter(([, { shards }]) => shards > 1)) };
}
