import { SqliteStore } from "./checkpoint/sqlite.ts";
import type { CheckpointStore } from "./checkpoint/store.ts";
import { type Clock, pause, type Random } from "./clock.ts";
import { WatchfireError } from "./errors.ts";
import type { KubeTransport } from "./kube/transport.ts";
import type { Elector, Eligible } from "./lease/elector.ts";
import type { Logger } from "./observe/log.ts";

/** On the Lease: where the positions are, `kubernetes` or `sqlite/<pod>`. Whoever has them elsewhere must not take it. */
export const positionsKey = "watchfire.dev/positions";

export interface PositionsOptions {
  /** The data folder. */
  readonly data: string;
  /** Where positions are to be kept. Default `sqlite`. */
  readonly store?: "sqlite" | "kubernetes";
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account?: string;
  /** The pod's name, where there is an election. */
  readonly pod?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Called when another runtime has taken the store over. */
  readonly onLost: (error: WatchfireError) => void;
}

/** How often a data folder that another process still holds is tried, in milliseconds. */
const lockedMs = 1_000;

/** Only the pod whose volume holds the positions may take the Lease; positions in Secrets are within everybody's reach. */
export function eligibleFor(pod: string): Eligible {
  return ({ [positionsKey]: place = "" }) =>
    place === "" || place === "kubernetes" || place === `sqlite/${pod}`
      ? undefined
      : `the positions are with ${place.replace("sqlite/", "the volume of ")}`;
}

/** Opens the store. */
export async function openPositions(
  options: PositionsOptions,
  elector: Elector | undefined,
  signal: AbortSignal,
): Promise<CheckpointStore> {
  const { clock, log, data } = options;
  for (let told = false; ; told = true) {
    try {
      return new SqliteStore({ folder: data });
    } catch (error) {
      // The process of a pod that was deleted by force may still end; the kernel then frees its lock.
      const locked = error instanceof WatchfireError && error.code === "WF_CHECKPOINT_LOCKED";
      if (!locked || !elector) throw error;
      if (!told) log.warn({ error: error.message }, "data folder is in use, waiting for it");
    }
    await pause(clock, lockedMs, signal);
  }
}
