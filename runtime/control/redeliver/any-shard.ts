import { WatchfireError } from "../../base/errors.ts";
import type { Redeliveries } from "../../observe/control-api.ts";
import { redeliveriesOf } from "./jobs.ts";
import type { RedeliveryCounts } from "./redeliverer.ts";

/** What a shard says that knows nothing of a run: one that knows of it says more. */
const unaware = "WF_RUNTIME_NO_RUN";

/**
 * What the first shard that can do it came to. Where none can, rejects with what the shard said that knows most, and
 * with where the other shards are. `elsewhere`: that in words; undefined where all are here.
 */
export async function anyShard<T>(
  shards: readonly T[],
  redeliver: (shard: T) => Promise<RedeliveryCounts>,
  elsewhere: string | undefined,
): Promise<Redeliveries> {
  const refusals: unknown[] = [];
  for (const shard of shards) {
    try {
      return redeliveriesOf(await redeliver(shard));
    } catch (error) {
      refusals.push(error);
    }
  }
  const isAware = (error: unknown) => !(error instanceof WatchfireError && error.code === unaware);
  const refusal = refusals.find(isAware) ?? refusals[0];
  if (elsewhere === undefined || !(refusal instanceof WatchfireError)) throw refusal;
  const what = `${refusal.detail.what}; this is so here alone: ${elsewhere}`;
  throw new WatchfireError(refusal.code, { ...refusal.detail, what, cause: refusal });
}
