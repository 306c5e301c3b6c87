import { type Clock, pause } from "../../base/clock.ts";
import type { Sharding } from "../../engine/state/sharding.ts";
import type { LeaseApi } from "../../lease/lease-api.ts";
import type { LeaseRecord } from "../../lease/lease-record.ts";
import { annotationsOf, type JournalLocation, placeIn, shardingsIn, shardingsNote } from "../../migrate/location.ts";

/** Interval at which the Lease is read, in milliseconds. */
const lookMs = 5_000;
/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;

/** Facts that an active replica knows about its fleet. */
export interface FleetFacts {
  readonly place: JournalLocation;
  readonly shardings: ReadonlyMap<string, Sharding>;
}

/**
 * The runtime's Lease, which says where a fleet's checkpoints are and how functions are spread. If the Lease or its annotations
 * are deleted, the next read by an active replica restores them. Otherwise a later replica would start with nothing.
 */
export class KeptLease implements LeaseApi {
  readonly create: LeaseApi["create"];
  readonly update: LeaseApi["update"];
  private readonly api: LeaseApi;
  private readonly facts: () => FleetFacts | undefined;
  private readonly log: { warn(fields: object, message: string): void };

  /** @param facts returns `undefined` while the replica is not active, because others may have moved checkpoints since */
  constructor(
    api: LeaseApi,
    facts: () => FleetFacts | undefined,
    log: { warn(fields: object, message: string): void },
  ) {
    this.api = api;
    this.facts = facts;
    this.log = log;
    this.create = (...asked) => api.create(...asked);
    this.update = (...asked) => api.update(...asked);
  }

  async get(timeoutMs: number): Promise<LeaseRecord | undefined> {
    for (;;) {
      const found = await this.api.get(timeoutMs);
      const facts = this.facts();
      const annotations = facts && lacking(found?.annotations ?? {}, facts);
      if (!annotations) return found;
      const written = await (found
        ? this.api.update(found, { annotations }, timeoutMs)
        : this.api.create({ holder: "", annotations }, timeoutMs));
      if (written === "conflict") continue;
      this.log.warn({ lease: written.name }, "annotations missing from the runtime's lease, written again");
      return written;
    }
  }

  /** Reads the Lease every few seconds. Never rejects. */
  async keep(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(clock, lookMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.get(requestMs).catch(() => undefined);
    }
  }
}

/** Returns the facts that the annotations lack. `undefined` if they are complete or name another place. */
function lacking(
  annotations: Readonly<Record<string, string>>,
  { place, shardings }: FleetFacts,
): Record<string, string> | undefined {
  const { where, set } = placeIn(annotations);
  const said = shardingsIn(annotations);
  const note = shardingsNote(new Map([...shardings, ...said]));
  if (where === "") return { ...annotationsOf(place), ...note };
  // In another set, functions may be spread differently.
  if (where !== place.where || set !== place.set) return undefined;
  return [...shardings.keys()].every((name) => said.has(name)) ? undefined : note;
}
