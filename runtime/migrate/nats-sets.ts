import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { type Sharding, spreadIn } from "../engine/state/sharding.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { MemoryJournal } from "../journal/memory/journal.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { JetstreamLog } from "../journal/nats/log.ts";
import { readSlot } from "../journal/nats/slot.ts";
import { slotsOn, sweepSlots } from "../journal/nats/sweep.ts";
import type { Logger } from "../observe/log.ts";
import { namesIn } from "./layout.ts";
import { isEarlier, setOf, setOfName } from "./location.ts";

/** How often a slot is read that seems damaged: it may be trimmed meanwhile. */
const readings = 3;

/** A set of slots, as it lies on NATS. */
export interface FoundSet {
  readonly set: string;
  /** By slot, the functions that it has something of; of a slot that is damaged, none. */
  readonly slots: ReadonlyMap<number, ReadonlySet<string>>;
  readonly spreads: ReadonlyMap<string, Sharding>;
  /** Whether a runtime went on from it. A set that was merely copied into may not be whole. */
  readonly isWorked: boolean;
  /** Where its positions went since. */
  readonly moved: string | undefined;
  /** The sequence of its last message. */
  readonly last: number;
  /** The cluster whose positions it has, by its uid. */
  readonly owner: string | undefined;
  /** How one of its slots is damaged. */
  readonly fault: WatchfireError | undefined;
}

/** Reads the sets of slots on NATS that are asked for; default all. They stay as they are. @throws what the client throws */
export async function readSets(nats: Nats, clock: Clock, isAsked = (_: string) => true): Promise<FoundSet[]> {
  const sets = Map.groupBy(await slotsOn(nats), setOfName);
  const found: FoundSet[] = [];
  for (const [set, names] of sets) if (isAsked(set)) found.push(await readSet(nats, clock, set, names));
  return found;
}

async function readSet(nats: Nats, clock: Clock, set: string, names: readonly string[]): Promise<FoundSet> {
  const slots = new Map<number, ReadonlySet<string>>();
  const spreads = new Map<string, Sharding>();
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
    // Whoever copies into a set writes under the fence that the set is named after.
    isWorked ||= note?.fence !== undefined && setOf(note.fence) !== set;
    const disk = await unlessDamaged(() => readSlot({ nats, slot, clock }));
    owner ??= disk?.cluster;
    for (const { function: name, cursors } of disk?.views.values() ?? [])
      for (const { selection } of cursors.values()) {
        const spread = spreadIn(selection);
        if (spread) spreads.set(name, spread);
      }
    const stores = disk ? [new Checkpoint(new MemoryJournal(disk))] : [];
    slots.set(Number(slot.slice(slot.lastIndexOf("_") + 1)), await namesIn(stores, { retired: true }));
  }
  return { set, slots, spreads, isWorked, moved, last, owner, fault };
}

/**
 * Marks streams that do not say whose they are as this cluster's, unless their positions are another's. An older runtime
 * made them. What it wrote says the cluster; where that cannot be read, they stay nobody's. New streams say it at once.
 * @throws WatchfireError WF_CHECKPOINT_OTHER_CLUSTER, and has written nothing then; what the client throws
 */
export async function claimStreams(nats: Nats, clock: Clock, log: Logger): Promise<void> {
  const { cluster } = nats;
  if (cluster === undefined || nats.owner !== undefined) return;
  const sets = await readSets(nats, clock);
  const owners = new Set(sets.flatMap(({ owner }) => owner ?? []));
  const [fault] = sets.flatMap((set) => set.fault ?? []);
  if (owners.size === 0 && fault) {
    // They may be anybody's. Whoever opens the slot reports the damage, and a later start asks again.
    log.warn({ stream: nats.logStream, error: fault.message }, "whose the streams are cannot be read");
    return;
  }
  const [other] = owners.difference(new Set([cluster]));
  if (other === undefined) return nats.mark();
  if (!owners.has(cluster)) throw nats.othersStreams(other);
  // Two clusters that an older runtime let in, each in slots of its own: neither is to lose its positions.
  log.warn({ stream: nats.logStream, other }, "the streams have positions of another cluster as well");
}

/**
 * Deletes the sets that count no more for a copy into `set`. They are the earlier sets of the same Lease, except `from`,
 * which is copied. Sets of a Lease that was deleted since go if they have positions of this cluster: another cluster may
 * have its own on the same NATS.
 * @throws WatchfireError; what the client throws
 */
export async function sweepSets(
  nats: Nats,
  clock: Clock,
  cluster: string | undefined,
  { set, from }: { readonly set: string; readonly from: string | undefined },
): Promise<void> {
  const isOther = (found: string) => found !== set && found !== from && !isEarlier(found, set);
  // The first set of each Lease has one name. It is ours unless it says another cluster. A damaged one may be in use.
  const isOurs = ({ set: found, owner, fault }: FoundSet) =>
    !fault && (owner === undefined ? found === "" : owner === cluster);
  const ours = new Set((await readSets(nats, clock, isOther)).filter(isOurs).map((found) => found.set));
  await sweepSlots(nats, (name) => {
    const found = setOfName(name);
    return found !== from && (isEarlier(found, set) || ours.has(found));
  });
}
