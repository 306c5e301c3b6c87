import { pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { whole } from "../engine/state/sharding.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { placesOf } from "./layout.ts";
import { annotationsOf, fleetPlace, isEarlier, slotName, spreadsNote } from "./location.ts";
import { type FoundSet, readSets } from "./nats-sets.ts";
import { type NatsStoreOptions, withNats } from "./open-journal.ts";

/** Replicas at work write the Lease again meanwhile, in milliseconds: they look every 5 s, and a request takes 3 at most. */
const patienceMs = 10_000;

/** Where positions are, by what lies on NATS. */
interface FoundJournal {
  readonly where: string;
  /** The Lease's annotations that say so. */
  readonly annotations: Readonly<Record<string, string>>;
}

interface FindOptions extends NatsStoreOptions {
  /** How many slots the runtime is started with; undefined of one alone. */
  readonly slots?: number | undefined;
}

/**
 * Looks where positions are when no Lease says it, as when somebody deleted the Lease. To begin with nothing would lose
 * them. Undefined where NATS has none, or no NATS is named. Resolves when replicas at work would have said it on the Lease.
 * They know better: what lies in a set may fit more slots than they have.
 * @throws WatchfireError WF_CHECKPOINT_UNPLACED where it cannot be known; others of the checkpoint section; the signal's reason
 */
export async function findPlace(options: FindOptions, signal: AbortSignal): Promise<FoundJournal | undefined> {
  if (!options.nats) return undefined;
  const look = async (nats: Nats) => placeOf(options, nats, await readSets(nats, options.clock));
  const found = await withNats(options, look).catch((error: unknown) => {
    throw natsFault(error, "it could not be read where positions are");
  });
  if (!found) return undefined;
  options.log.warn({ place: found.where }, "the lease said nothing of positions, found on NATS");
  await pause(options.clock, patienceMs, signal);
  return found;
}

function placeOf(
  { cluster, slots: asked }: FindOptions,
  { logStream, logSubject }: Nats,
  all: FoundSet[],
): FoundJournal | undefined {
  const sets = all.filter(({ owner }) => owner === undefined || cluster === undefined || owner === cluster);
  const [left] = sets.flatMap(({ moved }) => moved ?? []);
  const here = sets.filter(({ moved }) => moved === undefined);
  const place = (where: string, set = "") => ({ where, annotations: annotationsOf({ where, set, carried: {} }) });
  // What they were copied into is gone with the streams, or a Lease, or a volume, says more of it.
  if (here.length === 0 && !left?.startsWith("fleet/")) return left === undefined ? undefined : place(left);
  const found = theOne(here, asked === undefined);
  if (found && isOfOne(found) && asked !== 1) return place("nats", found.set);
  const slots = found && slotsOf(found, asked);
  if (!found || slots === undefined) {
    const words = sets
      .toSorted((a, b) => b.last - a.last)
      .map(({ set, slots: of }) => {
        const first = slotName(set, Math.min(...of.keys()));
        return `"${set}" of ${of.size} slots (${logSubject}.${first}…)`;
      });
    throw unplaced(
      `the stream ${logStream} has these sets, the one that was written to last first: ${words.join(", ")}`,
    );
  }
  const { where, annotations } = place(fleetPlace(slots), found.set);
  return { where, annotations: { ...annotations, ...spreadsNote(found.spreads) } };
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

/** The fault of positions that lie in several places, of which no Lease says which counts. */
export const unplaced = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_UNPLACED", { what });
