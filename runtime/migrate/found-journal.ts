import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { type Sharding, spreadIn, spreadsNote, whole } from "../engine/state/sharding.ts";
import type { MemoryDisk } from "../journal/memory/journal.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { JetstreamLog } from "../journal/nats/log.ts";
import { readSlot } from "../journal/nats/slot.ts";
import { slotsOn } from "../journal/nats/sweep.ts";
import { annotationsOf, fleetPlace, isEarlier, setOf, setOfName, slotName } from "./journal-location.ts";
import { placesOf } from "./layout.ts";
import { connectNats, type NatsStoreOptions } from "./open-nats.ts";

/** Replicas at work write the Lease again meanwhile, in milliseconds: they look every 5 s, and a request takes 3 at most. */
const patienceMs = 10_000;

/** Where positions are, by what lies on NATS. */
interface FoundJournal {
  readonly where: string;
  /** What the Lease is to say of it. */
  readonly annotations: Readonly<Record<string, string>>;
}

interface FindOptions extends Omit<NatsStoreOptions, "onLost" | "isThere"> {
  /** How many slots the runtime is started with; undefined of one alone. */
  readonly slots?: number | undefined;
}

/** A set of slots, as it lies on NATS. */
interface FoundSet {
  readonly set: string;
  readonly slots: ReadonlyMap<number, ReadonlySet<string>>;
  readonly spreads: ReadonlyMap<string, Sharding>;
  /** Whether a runtime went on from it. Of one that was carried and no more, nobody knows whether it is whole. */
  readonly isWorked: boolean;
  /** Where its positions went since. */
  readonly moved: string | undefined;
  /** The sequence of its last message. */
  readonly last: number;
}

/**
 * Looks where positions are when no Lease says it, as when somebody deleted the Lease. To begin with nothing would lose
 * them. Undefined where NATS has none, or no NATS is named. Resolves when replicas at work would have said it on the Lease.
 * They know better: what lies in a set may fit more slots than they have.
 * @throws WatchfireError WF_CHECKPOINT_UNPLACED where it cannot be known; others of the checkpoint section; the signal's reason
 */
export async function findPlace(options: FindOptions, signal: AbortSignal): Promise<FoundJournal | undefined> {
  const found = await lookOnNats(options);
  if (!found) return undefined;
  options.log.warn({ place: found.where }, "the lease said nothing of positions, found on NATS");
  await pause(options.clock, patienceMs, signal);
  return found;
}

async function lookOnNats(options: FindOptions): Promise<FoundJournal | undefined> {
  if (!options.nats) return undefined;
  const connection = await connectNats(options);
  try {
    return await placeOf(options, connection);
  } catch (error) {
    throw natsFault(error, "it could not be read where positions are");
  } finally {
    await connection.close();
  }
}

async function placeOf(options: FindOptions, connection: Nats): Promise<FoundJournal | undefined> {
  const { cluster, clock } = options;
  const sets: FoundSet[] = [];
  for (const [set, names] of Map.groupBy(await slotsOn(connection), setOfName)) {
    const { owner, ...found } = await readSet(connection, clock, set, names);
    if (owner === undefined || cluster === undefined || owner === cluster) sets.push(found);
  }
  const [left] = sets.flatMap(({ moved }) => moved ?? []);
  const here = sets.filter(({ moved }) => moved === undefined);
  // What they were carried into is gone with the streams, or a Lease, or a volume, says more of it.
  if (here.length === 0 && !left?.startsWith("fleet/"))
    return left === undefined ? undefined : { where: left, annotations: annotationsOf({ ...first, where: left }) };
  const found = theOne(here, options.slots === undefined);
  if (!found) throw unplaced(connection, sets);
  const { set, spreads } = found;
  if (isOfOne(found) && options.slots !== 1)
    return { where: "nats", annotations: annotationsOf({ ...first, where: "nats", set }) };
  const slots = slotsOf(found, options.slots);
  if (slots === undefined) throw unplaced(connection, sets);
  const where = fleetPlace(slots);
  return { where, annotations: { ...annotationsOf({ ...first, where, set }), ...spreadsNote(spreads) } };
}

/** The set that was worked with last; undefined where that cannot be known. */
function theOne(sets: readonly FoundSet[], isAlone: boolean): FoundSet | undefined {
  const worked = sets.filter(({ isWorked }) => isWorked);
  // A later term of the same Lease has worked with what it had carried from an earlier one.
  const newest = worked.filter(({ set }) => !worked.some((other) => isEarlier(set, other.set)));
  // A runtime alone goes on in the term in which it carried them. Whatever they came from is gone since.
  const candidates = newest.length > 0 ? newest : isAlone && sets.length === 1 ? sets.filter(isOfOne) : [];
  const [only, ...others] = candidates;
  // What was written to behind it may be a copy of it, which is whole, and it may itself be swept in part since.
  const isLast = sets.every(({ last }) => last <= (only?.last ?? 0));
  return others.length === 0 && isLast ? only : undefined;
}

const first = { set: "", carried: {} };

/** Only a runtime alone has all in one slot. */
const isOfOne = ({ slots }: FoundSet): boolean => slots.size === 1 && slots.has(0);

/** How many slots the fleet has whose positions these are: as many as are asked for, where each function lies as in that many. */
function slotsOf({ slots, spreads }: FoundSet, asked: number | undefined): number | undefined {
  const least = Math.max(...slots.keys()) + 1;
  const fits = (count: number) => {
    const layout = { slots: count, spreadOf: (name: string) => spreads.get(name) ?? whole };
    const isRight = ([slot, names]: readonly [number, ReadonlySet<string>]) =>
      [...names].every((name) => placesOf(layout, name).includes(slot));
    return count >= least && [...slots].every(isRight);
  };
  return [asked ?? least, least].find(fits);
}

async function readSet(
  nats: Nats,
  clock: Clock,
  set: string,
  names: readonly string[],
): Promise<FoundSet & { readonly owner: string | undefined }> {
  const slots = new Map<number, ReadonlySet<string>>();
  const spreads = new Map<string, Sharding>();
  let owner: string | undefined;
  let moved: string | undefined;
  let last = 0;
  let isWorked = set === "";
  for (const slot of names) {
    const { note, sequence = 0 } = (await unlessDamaged(() => new JetstreamLog(nats, clock, slot).read())) ?? {};
    last = Math.max(last, sequence);
    if (note?.end.startsWith("moved:")) moved = note.end.slice("moved:".length);
    // Whoever carries into a set writes under the fence that the set is named after.
    isWorked ||= note?.fence !== undefined && setOf(note.fence) !== set;
    const disk = await unlessDamaged(() => readSlot({ nats, slot, clock }));
    owner ??= disk?.cluster;
    for (const { function: name, cursors } of disk?.views.values() ?? [])
      for (const { selection } of cursors.values()) {
        const spread = spreadIn(selection);
        if (spread) spreads.set(name, spread);
      }
    slots.set(Number(slot.slice(slot.lastIndexOf("_") + 1)), new Set(disk && namesOn(disk)));
  }
  return { set, slots, spreads, isWorked, moved, last, owner };
}

/** Undefined of a slot that is damaged: whoever opens it tells of that. */
async function unlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof WatchfireError && error.code === "WF_CHECKPOINT_CORRUPT") return undefined;
    throw error;
  }
}

const namesOn = ({ views, paused, letters }: MemoryDisk): string[] => [
  ...[...views.values()].map((view) => view.function),
  ...paused.keys(),
  ...[...letters.values()].map((letter) => letter.function),
];

function unplaced({ logStream, logSubject }: Nats, sets: readonly FoundSet[]): WatchfireError {
  const words = sets
    .toSorted((a, b) => b.last - a.last)
    .map(
      ({ set, slots }) =>
        `"${set}" of ${slots.size} slots (${logSubject}.${slotName(set, Math.min(...slots.keys()))}…)`,
    );
  return new WatchfireError("WF_CHECKPOINT_UNPLACED", {
    what: `the stream ${logStream} has these sets, the one that was written to last first: ${words.join(", ")}`,
  });
}
