import { isAsAsked, type Sharding, spreadOf } from "../engine/state/sharding.ts";
import type { Nats } from "../journal/nats/connection.ts";
import type { Fence } from "../lease/elector.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { layoutOf, placesOf } from "./layout.ts";
import { annotationsOf, fleetPlace, setOf, slotName, spreadsNote } from "./location.ts";
import { type Destination, fillJournal } from "./move.ts";
import { sweepSets } from "./nats-sets.ts";
import { type NatsStoreOptions, openSlot, roomOfSlot } from "./open-journal.ts";
import { endOf } from "./sources.ts";

/** Size of the cache of bodies while a slot is filled, in bytes. Each is written once. */
const cacheBytes = 1024 * 1024;

interface SlotsOptions extends Pick<NatsStoreOptions, "cluster" | "clock" | "log"> {
  readonly connection: Nats;
  /** Number of slots of the fleet. */
  readonly slots: number;
  /** Reads the functions that will run. */
  readonly manifests: () => Promise<readonly FunctionManifest[]>;
}

/**
 * The slots of a fleet in a new set, named after the fence's term, so that no earlier or later process writes there. If this
 * process ends before the switch, the next move sweeps the set.
 */
export function fleetSlots(options: SlotsOptions, fence: Fence, signal: AbortSignal): Destination {
  const { connection, slots, cluster, clock, log } = options;
  const where = fleetPlace(slots);
  const fill: Destination["fill"] = async (sources, names) => {
    const manifests = await options.manifests();
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
        await fillJournal(sources, journal, { layout, slot }, signal);
        isDone = true;
      } finally {
        // The next process to open it must see how the last run ended.
        await journal.close(isDone && end === "clean");
      }
    }
    const spreads = [...names].map((name) => [name, spreadNow(name)] as const).filter(([, { shards }]) => shards > 1);
    return { ...annotationsOf({ where, set, carried }), ...spreadsNote(new Map(spreads)) };
  };
  return { where, fill };
}
