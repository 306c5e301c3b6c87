import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { formatSharding, parseSharding, type Sharding } from "../engine/state/sharding.ts";
import type { LeaseApi } from "../lease/lease-api.ts";
import type { Fence } from "../lease/lease-record.ts";

/**
 * Annotation of the Lease: the place of the checkpoints, `kubernetes`, `nats`, `sqlite/<pod>` or `fleet/<slots>`. A runtime with
 * another place must not take the Lease.
 */
export const positionsKey = "watchfire.dev/positions";
/** Annotation of the Lease: the set of slots on NATS that holds them. Each move to NATS uses a new set. */
const setKey = "watchfire.dev/nats-set";
/**
 * Annotation of the Lease: the progress of the slots' logs when checkpoints were moved into them, until the slots' Leases have
 * newer marks.
 */
const carriedKey = "watchfire.dev/nats-carried";

/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;

/** The location of the checkpoints, as recorded on the runtime's Lease. */
export interface JournalLocation {
  /** The recorded place. "" if there are no checkpoints. */
  readonly where: string;
  /** Number of slots, if it is a fleet. */
  readonly slots: number | undefined;
  /** The set of slots on NATS; "" is the first. */
  readonly set: string;
  /** By slot, its mark when checkpoints were moved into it. */
  readonly carried: Readonly<Record<string, string>>;
}

const carriedSchema = z.record(z.string(), z.string());

/** @throws SyntaxError or ZodError if the annotations were changed by others */
export function placeIn(annotations: Readonly<Record<string, string>>): JournalLocation {
  const { [positionsKey]: where = "", [setKey]: set = "", [carriedKey]: carried } = annotations;
  const slots = /^fleet\/(\d+)$/.exec(where)?.[1];
  return {
    where,
    slots: slots === undefined ? undefined : Number(slots),
    set,
    carried: carried ? carriedSchema.parse(JSON.parse(carried)) : {},
  };
}

/** Reads the location from the API server. */
export async function readPlace(lease: LeaseApi): Promise<JournalLocation> {
  return placeIn((await lease.get(requestMs))?.annotations ?? {});
}

/** Returns the Lease's annotations for a location. */
export const annotationsOf = ({ where, set, carried }: Omit<JournalLocation, "slots">): Record<string, string> => ({
  [positionsKey]: where,
  [setKey]: set,
  [carriedKey]: JSON.stringify(carried),
});

/** Returns the place of a fleet with this many slots. */
export const fleetPlace = (slots: number): string => `fleet/${slots}`;

/** Returns the name of a set's slot on NATS. */
export const slotName = (set: string, slot: number): string => (set === "" ? String(slot) : `${set}_${slot}`);

/** Returns the set that the Lease's holder moves checkpoints into in this term. No earlier or later holder writes there. */
export const setOf = ({ lease, number }: Fence): string => `${lease.replace(/[^0-9a-z]/gi, "").slice(0, 8)}-${number}`;

/** Returns the newest of a Lease's terms that has a set among these, or 0. */
export const newestTerm = ({ lease }: Fence, sets: Iterable<string>): number => {
  const prefix = setOf({ lease, number: 0 }).slice(0, -1);
  const terms = [...sets].flatMap((set) => (set.startsWith(prefix) ? Number(set.slice(prefix.length)) : []));
  return Math.max(0, ...terms);
};

/** Returns the set in a slot's name. */
export const setOfName = (name: string): string => /^(?:(.*)_)?\d+$/.exec(name)?.[1] ?? "";

/** True if a set belongs to an earlier term of the same Lease. */
export function isEarlier(found: string, set: string): boolean {
  const [lease, number] = found.split("-");
  const [ours, term] = set.split("-");
  return lease === ours && Number(number) < Number(term);
}

/** Annotation of the runtime's Lease: the sharding of each function that has, or should have, more than one shard. */
const shardingsKey = "watchfire.dev/shards";

const recordSchema = z.record(z.string(), z.string());

/**
 * Returns the shardings by function. Throws for an unknown sharding, because with any other a key could be in two shards at once.
 * @throws WatchfireError WF_CHECKPOINT_NEWER_SCHEMA if a newer runtime has written it
 * @throws SyntaxError or ZodError if the annotation was changed by others
 */
export function shardingsIn({ [shardingsKey]: text = "{}" }: Readonly<Record<string, string>>): Map<string, Sharding> {
  return new Map(
    Object.entries(recordSchema.parse(JSON.parse(text))).map(([name, words]) => {
      const sharding = parseSharding(words);
      if (sharding) return [name, sharding];
      const what = `the Lease says how the function ${name} is spread, in a form that this runtime does not know`;
      throw new WatchfireError("WF_CHECKPOINT_NEWER_SCHEMA", { what, actual: words });
    }),
  );
}

/** Returns the annotation for the shardings. */
export const shardingsNote = (shardings: ReadonlyMap<string, Sharding>): Record<string, string> => ({
  [shardingsKey]: JSON.stringify(
    Object.fromEntries([...shardings].map(([name, sharding]) => [name, formatSharding(sharding)])),
  ),
});
