import type { Clock } from "../base/clock.ts";
import type { Nats } from "../journal/nats/connection.ts";
import { clusterOf } from "../journal/nats/slot.ts";
import { slotsOn, sweepSlots } from "../journal/nats/sweep.ts";
import { isEarlier, setOfName } from "./journal-location.ts";

interface SweepOptions {
  readonly connection: Nats;
  /** The cluster's uid, where it is known. */
  readonly cluster: string | undefined;
  readonly clock: Clock;
}

/**
 * Takes the sets of slots away that count no more for whoever carries positions into `set`. They are the earlier ones of the
 * same Lease, but for `from`, the one that they are carried from. Of a Lease that was deleted since, they are those with
 * positions of this cluster. Another one may have its own on the same NATS.
 * @throws WatchfireError; what the client throws
 */
export async function sweepSets(options: SweepOptions, set: string, from: string | undefined): Promise<void> {
  const { connection } = options;
  const over = new Set<string>();
  for (const [found, slots] of Map.groupBy(await slotsOn(connection), setOfName)) {
    if (found === set || found === from) continue;
    if (isEarlier(found, set) || (await isOurs(options, found, slots))) over.add(found);
  }
  await sweepSlots(connection, (name) => over.has(setOfName(name)));
}

/** The first set of each Lease has one name. It is ours where nothing says that it is not. */
async function isOurs({ connection, cluster, clock }: SweepOptions, set: string, slots: readonly string[]) {
  try {
    for (const slot of slots) {
      const found = await clusterOf({ nats: connection, slot, clock });
      if (found !== undefined) return found === cluster;
    }
    return set === "";
  } catch {
    // Somebody writes into it, and trims what is read.
    return false;
  }
}
