import { pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { whole } from "../engine/state/sharding.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { natsFault } from "../journal/nats/fault.ts";
import { placesOf } from "./layout.ts";
import { annotationsOf, fleetPlace, isEarlier, shardingsNote, slotName } from "./location.ts";
import { type FoundSet, readSets } from "./nats-sets.ts";
import { type NatsStoreOptions, withNats } from "./open-journal.ts";

/**
 * How long to wait for active replicas to write the Lease, in milliseconds. They check it every 5 s, and a request takes at most
 * 3 s.
 */
const patienceMs = 10_000;

/** The location of the checkpoints, according to NATS. */
interface FoundJournal {
  readonly where: string;
  /** The Lease's annotations for this location. */
  readonly annotations: Readonly<Record<string, string>>;
}

interface FindOptions extends NatsStoreOptions {
  /** Number of slots that the runtime is started with. `undefined` for a single runtime. */
  readonly slots?: number | undefined;
}

/**
 * Finds the checkpoints on NATS if no Lease names their place, for example after the Lease was deleted. Starting without them
 * would lose them. Returns `undefined` if NATS has no checkpoints, or no NATS is given. Waits first, so that active replicas can
 * write the Lease. Their record is more reliable, because the same contents may also fit a larger number of slots.
 * @throws WatchfireError WF_CHECKPOINT_UNPLACED if the place cannot be determined; others of the checkpoint section; the signal's
 * reason
 */
export async function findPlace(options: FindOptions, signal: AbortSignal): Promise<FoundJournal | undefined> {
  if (!options.nats) return undefined;
  const look = async (nats: Nats) => placeOf(options, nats, await readSets(nats, options.clock));
  const found = await withNats(options, look).catch((error: unknown) => {
    throw natsFault(error, "the place of the checkpoints could not be read");
  });
  if (!found) return undefined;
  options.log.warn({ place: found.where }, "lease names no store, checkpoints found on NATS");
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
  // No usable set: it was deleted with the streams, or the checkpoints are in a place that only a Lease or a volume names.
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
  return { where, annotations: { ...annotations, ...shardingsNote(found.shardings) } };
}

/** Returns the set that was used last. `undefined` if that cannot be determined. */
function theOne(sets: readonly FoundSet[], isAlone: boolean): FoundSet | undefined {
  const worked = sets.filter(({ isWorked }) => isWorked);
  // Leaves out sets of earlier terms: a later term of the same Lease has copied them, and worked since.
  const newest = worked.filter(({ set }) => !worked.some((other) => isEarlier(set, other.set)));
  // A single runtime continues in the term in which it copied them. The sources have been deleted since.
  const candidates = newest.length > 0 ? newest : isAlone && sets.length === 1 ? sets.filter(isOfOne) : [];
  const [only, ...others] = candidates;
  // If another set was written later, it may be the full copy, and this one partly deleted.
  const isLast = sets.every(({ last }) => last <= (only?.last ?? 0));
  return others.length === 0 && isLast ? only : undefined;
}

/** True if one slot has everything, which only a single runtime has. */
const isOfOne = ({ slots }: FoundSet): boolean => slots.size === 1 && slots.has(0);

/**
 * Returns the number of slots of the fleet that the checkpoints belong to: `asked`, if each function is where it would be with
 * that number.
 */
function slotsOf({ slots, shardings }: FoundSet, asked: number | undefined): number | undefined {
  const least = Math.max(...slots.keys()) + 1;
  const fits = (count: number) => {
    const layout = { slots: count, shardingOf: (name: string) => shardings.get(name) ?? whole };
    const isRight = ([slot, names]: readonly [number, ReadonlySet<string>]) =>
      [...names].every((name) => placesOf(layout, name).includes(slot));
    return count >= least && [...slots].every(isRight);
  };
  return [asked ?? least, least].find(fits);
}

/** The error for checkpoints in several places if no Lease says which are valid. */
export const unplaced = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_UNPLACED", { what });
