import { WatchfireError } from "../base/errors.ts";
import type { Checkpoint } from "./checkpoint.ts";

/**
 * Ties the store to a cluster, named by the uid of its kube-system namespace. A store of another cluster is refused with
 * WF_CHECKPOINT_OTHER_CLUSTER, because checkpoints of one cluster mean nothing in another.
 */
export async function claimCluster(store: Checkpoint, uid: string): Promise<void> {
  const owner = await store.cluster();
  if (owner === uid) return;
  if (owner === undefined) return store.setCluster(uid);
  throw otherCluster("the checkpoints are", owner, uid);
}

/** @param positions such as `the positions are` */
export const otherCluster = (
  positions: string,
  owner: string,
  actual: string | undefined,
  hint?: string,
): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_OTHER_CLUSTER", {
    what: `${positions} of the cluster whose kube-system namespace has the uid ${owner}`,
    actual,
    ...(hint !== undefined && { hint }),
  });
