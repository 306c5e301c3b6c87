import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { type Sharding, shardingIn } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { MemoryJournal } from "../journal/memory/journal.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { JetstreamLog } from "../journal/nats/log.ts";
import { readSlot } from "../journal/nats/slot.ts";
import { slotsOn, sweepSlots } from "../journal/nats/sweep.ts";
import type { Logger } from "../observe/log.ts";
import { namesIn } from "./layout.ts";
import { isEarlier, setOf, setOfName } from "./location.ts";

/** Number of attempts to read a slot that seems damaged, because it may be trimmed meanwhile. */
const readings = 3;

/** A set of slots on NATS. */
export interface FoundSet {
  readonly set: string;
  /** By slot, the functions it has rows of; empty for a damaged slot. */
  readonly slots: ReadonlyMap<number, ReadonlySet<string>>;
  readonly shardings: ReadonlyMap<string, Sharding>;
  /** True if a runtime has used it. A set that was only copied into may be incomplete. */
  readonly isWorked: boolean;
  /** The place that its checkpoints were moved to, if they were. */
  readonly moved: string | undefined;
  /** The sequence of its last message. */
  readonly last: number;
  /** The uid of the cluster that the checkpoints belong to. */
  readonly owner: string | undefined;
  /** The damage of one of its slots. */
  readonly fault: WatchfireError | undefined;
}

/** Reads sets of slots on NATS without changing them. Default: all sets. @throws what the client throws */
export async function readSets(nats: Nats, clock: Clock, isAsked = (_: string) => true): Promise<FoundSet[]> {
  const sets = Map.groupBy(await slotsOn(nats), setOfName);
  const found: FoundSet[] = [];
  for (const [set, names] of sets) if (isAsked(set)) found.push(await readSet(nats, clock, set, names));
  return found;
}

async function readSet(nats: Nats, clock: Clock, set: string, names: readonly string[]): Promise<FoundSet> {
  const slots = new Map<number, ReadonlySet<string>>();
  const shardings = new Map<string, Sharding>();
  let [owner, moved, fault]: [string?, string?, WatchfireError?] = [];
  let last = 0;
  let isWorked = set === "";
  const unlessDamaged = async <T>(read: () => Promise<T>): Promise<T | undefined> => {
    for (let tries = 1; ; tries++) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof WatchfireError) || error.code !== "WF_CHECKPOINT_CORRUPT") throw error;
        if (tries < readings) continue;
        fault ??= error;
        return undefined;
      }
    }
  };
  for (const slot of names) {
    const { note, sequence = 0 } = (await unlessDamaged(() => new JetstreamLog(nats, clock, slot).read())) ?? {};
    last = Math.max(last, sequence);
    if (note?.end.startsWith("moved:")) moved = note.end.slice("moved:".length);
    // A process that copies into a set uses the fence that the set is named after.
    isWorked ||= note?.fence !== undefined && setOf(note.fence) !== set;
    const disk = await unlessDamaged(() => readSlot({ nats, slot, clock }));
    owner ??= disk?.cluster;
    for (const { function: name, cursors } of disk?.views.values() ?? [])
      for (const { selection } of cursors.values()) {
        const sharding = shardingIn(selection);
        if (sharding) shardings.set(name, sharding);
      }
    const stores = disk ? [new Checkpoint(new MemoryJournal(disk))] : [];
    slots.set(Number(slot.slice(slot.lastIndexOf("_") + 1)), await namesIn(stores, { retired: true }));
  }
  return { set, slots, shardings, isWorked, moved, last, owner, fault };
}

/**
 * Marks streams of an older runtime, which have no mark, as this cluster's, unless their checkpoints belong to another. The
 * checkpoints name their cluster. If they cannot be read, the streams stay unmarked. New streams are created with a mark.
 * @throws WatchfireError WF_CHECKPOINT_OTHER_CLUSTER, without having written; what the client throws
 */
export async function claimStreams(nats: Nats, clock: Clock, log: Logger): Promise<void> {
  const { cluster } = nats;
  if (cluster === undefined || nats.owner !== undefined) return;
  const sets = await readSets(nats, clock);
  const owners = new Set(sets.flatMap(({ owner }) => owner ?? []));
  const [fault] = sets.flatMap((set) => set.fault ?? []);
  if (owners.size === 0 && fault) {
    // Their cluster is unknown. Opening the slot reports the damage, and a later start checks again.
    log.warn({ stream: nats.logStream, error: fault.message }, "owner of the streams cannot be read");
    return;
  }
  const [other] = owners.difference(new Set([cluster]));
  if (other === undefined) return nats.mark();
  if (!owners.has(cluster)) throw nats.othersStreams(other);
  // An older runtime let in two clusters, with different slots. Neither must lose its checkpoints.
  log.warn({ stream: nats.logStream, other }, "the streams have checkpoints of another cluster as well");
}

/**
 * Deletes the sets that are invalid once `set` is filled: the earlier sets of the same Lease, except the source `from`. Sets of a
 * deleted Lease are deleted if their checkpoints belong to this cluster, because another cluster may have sets on the same NATS.
 * @throws WatchfireError; what the client throws
 */
export async function sweepSets(
  nats: Nats,
  clock: Clock,
  cluster: string | undefined,
  { set, from }: { readonly set: string; readonly from: string | undefined },
): Promise<void> {
  const isOther = (found: string) => found !== set && found !== from && !isEarlier(found, set);
  // The first set has the same name under each Lease. It is ours unless it names another cluster. A damaged one may be in use.
  const isOurs = ({ set: found, owner, fault }: FoundSet) =>
    !fault && (owner === undefined ? found === "" : owner === cluster);
  const ours = new Set((await readSets(nats, clock, isOther)).filter(isOurs).map((found) => found.set));
  await sweepSlots(nats, (name) => {
    const found = setOfName(name);
    return found !== from && (isEarlier(found, set) || ours.has(found));
  });
}
