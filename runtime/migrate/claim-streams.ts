import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { clusterOf } from "../journal/nats/slot.ts";
import { slotsOn } from "../journal/nats/sweep.ts";
import type { Logger } from "../observe/log.ts";
import { setOfName } from "./journal-location.ts";

/** A slot that is written into may be trimmed while it is read; so often it is read anew. */
const readings = 3;

/**
 * Makes streams that do not say whose they are this cluster's, where their positions are not another's. An older runtime
 * has made them. What it wrote says the cluster, and is only read; where that cannot be read, they are nobody's yet. New
 * streams say it from the first on.
 * @throws WatchfireError WF_CHECKPOINT_OTHER_CLUSTER, and has written nothing then; what the client throws
 */
export async function claimStreams(nats: Nats, clock: Clock, log: Logger): Promise<void> {
  const { cluster } = nats;
  if (cluster === undefined || nats.owner !== undefined) return;
  const owners = new Set<string>();
  const faults: WatchfireError[] = [];
  for (const slots of Map.groupBy(await slotsOn(nats), setOfName).values()) {
    const owner = await ownerOf(nats, slots, clock, faults);
    if (owner !== undefined) owners.add(owner);
  }
  const [fault] = faults;
  if (owners.size === 0 && fault) {
    // They may be anybody's. Whoever opens the slot tells of the damage, and a later start asks again.
    log.warn({ stream: nats.logStream, error: fault.message }, "whose the streams are cannot be read");
    return;
  }
  const [other] = owners.difference(new Set([cluster]));
  if (other === undefined) return nats.mark();
  if (!owners.has(cluster)) throw nats.othersStreams(other);
  // Two clusters that an older runtime let in, each in slots of its own: neither is to lose its positions.
  log.warn({ stream: nats.logStream, other }, "the streams have positions of another cluster as well");
}

/** The cluster whose positions a set of slots has, by the first slot that says it. `faults`: of those that cannot be read. */
async function ownerOf(nats: Nats, slots: readonly string[], clock: Clock, faults: WatchfireError[]) {
  for (const slot of slots) {
    const owner = await read(nats, slot, clock);
    if (owner instanceof WatchfireError) faults.push(owner);
    else if (owner !== undefined) return owner;
  }
  return undefined;
}

/** The cluster that a slot says, or how it is damaged. */
async function read(nats: Nats, slot: string, clock: Clock): Promise<string | undefined | WatchfireError> {
  for (let tries = 1; ; tries++) {
    try {
      return await clusterOf({ nats, slot, clock });
    } catch (error) {
      if (!(error instanceof WatchfireError) || error.code !== "WF_CHECKPOINT_CORRUPT") throw error;
      if (tries === readings) return error;
    }
  }
}
