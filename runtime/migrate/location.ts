import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { readSpread, type Sharding, wordsOf } from "../engine/state/sharding.ts";
import type { Fence } from "../lease/elector.ts";
import type { LeaseApi } from "../lease/lease-api.ts";

/** On the Lease: where the positions are, `kubernetes`, `nats`, `sqlite/<pod>` or `fleet/<slots>`. Whoever has them elsewhere must not take it. */
export const positionsKey = "watchfire.dev/positions";
/** On the Lease: which set of slots on NATS holds them. Positions that are carried onto NATS go into a set of their own. */
const setKey = "watchfire.dev/nats-set";
/** On the Lease: how far the slots' logs were when positions were carried into them, until their own Leases say more. */
const carriedKey = "watchfire.dev/nats-carried";

/** One request, in milliseconds. */
const requestMs = 3_000;

/** Where positions are, as the runtime's Lease says it. */
export interface JournalLocation {
  /** As it is written; "" where there are none. */
  readonly where: string;
  /** Of a fleet, how many slots it has. */
  readonly slots: number | undefined;
  /** The set of slots on NATS; "" is the first. */
  readonly set: string;
  /** By slot, its mark when positions were carried into it. */
  readonly carried: Readonly<Record<string, string>>;
}

const carriedSchema = z.record(z.string(), z.string());

/** @throws SyntaxError or ZodError where somebody else wrote into it */
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

/** As the API server has it now. */
export async function readPlace(lease: LeaseApi): Promise<JournalLocation> {
  return placeIn((await lease.get(requestMs))?.annotations ?? {});
}

/** What the Lease says of it, once positions are there. */
export const annotationsOf = ({ where, set, carried }: Omit<JournalLocation, "slots">): Record<string, string> => ({
  [positionsKey]: where,
  [setKey]: set,
  [carriedKey]: JSON.stringify(carried),
});

/** Of positions that a fleet of so many slots has. */
export const fleetPlace = (slots: number): string => `fleet/${slots}`;

/** What a slot of a set is called on NATS. */
export const slotName = (set: string, slot: number): string => (set === "" ? String(slot) : `${set}_${slot}`);

/** The set into which whoever holds the Lease in this term carries positions: nobody before or after it writes there. */
export const setOf = ({ lease, number }: Fence): string => `${lease.replace(/[^0-9a-z]/gi, "").slice(0, 8)}-${number}`;

/** The set that a slot's name says. */
export const setOfName = (name: string): string => /^(?:(.*)_)?\d+$/.exec(name)?.[1] ?? "";

/** Whether a set is an earlier one of the same Lease. */
export function isEarlier(found: string, set: string): boolean {
  const [lease, number] = found.split("-");
  const [ours, term] = set.split("-");
  return lease === ours && Number(number) < Number(term);
}

/** On the runtime's Lease: how each function is spread that has more than one shard, or was asked to have. */
const spreadsKey = "watchfire.dev/shards";

const recordSchema = z.record(z.string(), z.string());

/**
 * By function. Words that are not known are no reason to begin with others: a key would be in two shards at once.
 * @throws WatchfireError WF_CHECKPOINT_NEWER_SCHEMA where a newer runtime has written such
 * @throws SyntaxError or ZodError where somebody else wrote into it
 */
export function spreadsIn({ [spreadsKey]: text = "{}" }: Readonly<Record<string, string>>): Map<string, Sharding> {
  return new Map(
    Object.entries(recordSchema.parse(JSON.parse(text))).map(([name, words]) => {
      const spread = readSpread(words);
      if (spread) return [name, spread];
      const what = `the Lease says how the function ${name} is spread, in words that this runtime does not know`;
      throw new WatchfireError("WF_CHECKPOINT_NEWER_SCHEMA", { what, actual: words });
    }),
  );
}

/** The annotation that says it. */
export const spreadsNote = (spreads: ReadonlyMap<string, Sharding>): Record<string, string> => ({
  [spreadsKey]: JSON.stringify(Object.fromEntries([...spreads].map(([name, spread]) => [name, wordsOf(spread)]))),
});
