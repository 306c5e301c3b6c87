import { isSatisfiedBy, type Sharding, shardingOf } from "../engine/state/sharding.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { slotsOn } from "../journal/nats/sweep.ts";
import { type Elector, lostError } from "../lease/elector.ts";
import type { Fence } from "../lease/lease-record.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { layoutOf, placesOf } from "./layout.ts";
import { annotationsOf, fleetPlace, newestTerm, setOf, setOfName, shardingsNote, slotName } from "./location.ts";
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
 * The slots of a fleet in a new set, named after the fence, so that no earlier or later process writes there. If this process ends
 * before the switch, the next move sweeps the set.
 */
export function fleetSlots(
  options: SlotsOptions,
  elector: Pick<Elector, "fence" | "holds" | "raise">,
  signal: AbortSignal,
): Destination {
  const { connection, slots, cluster, clock, log } = options;
  const where = fleetPlace(slots);
  const fill: Destination["fill"] = async (sources, names) => {
    const manifests = await options.manifests();
    const fence = await newFence(connection, elector);
    const set = setOf(fence);
    await sweepSets(connection, clock, cluster, { set, from: sources.set });
    const asked = new Map(manifests.map((manifest) => [manifest.name, shardingOf(manifest)]));
    const shardingNow = (name: string): Sharding => {
      const [wanted, had] = [asked.get(name), sources.layout.shardingOf(name)];
      return wanted && !isSatisfiedBy(wanted, had) ? wanted : had;
    };
    const layout = layoutOf(slots, shardingNow, manifests);
    const end = endOf(sources);
    const carried: Record<string, string> = {};
    for (const slot of new Set([...names].flatMap((name) => placesOf(layout, name)))) {
      signal.throwIfAborted();
      const annotate = async (marks: Readonly<Record<string, string | undefined>>) => {
        carried[slot] = Object.values(marks).at(-1) ?? "";
      };
      const of = { slot: slotName(set, slot), room: roomOfSlot(slots), cacheBytes, onLost: () => {} };
      const held = {
        fence,
        raise: elector.raise.bind(elector),
        get holds() {
          return elector.holds;
        },
        annotations: {},
        annotate,
      };
      const journal = await openSlot({ connection, clock, log, ...of }, held);
      let isDone = false;
      try {
        await fillJournal(sources, journal, { layout, slot }, signal);
        isDone = true;
      } finally {
        // The next process to open it must see how the last run ended.
        await journal.close(isDone && end === "clean");
      }
    }
    const shardings = [...names]
      .map((name) => [name, shardingNow(name)] as const)
      .filter(([, { shards }]) => shards > 1);
    return { ...annotationsOf({ where, set, carried }), ...shardingsNote(new Map(shardings)) };
  };
  return { where, fill };
}

/** Raises the fence above all sets of its Lease, because a restore of etcd may have set the Lease back behind some of them. */
async function newFence(connection: Nats, elector: Pick<Elector, "fence" | "raise">): Promise<Fence> {
  const { fence } = elector;
  const newest = fence ? newestTerm(fence, (await slotsOn(connection)).map(setOfName)) : 0;
  const above = fence && newest >= fence.number ? await elector.raise(newest) : fence;
  if (!above) throw lostError("it was lost before the checkpoints were moved");
  return above;
}
