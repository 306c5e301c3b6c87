import type { Cluster, ClusterErrorCode, ClusterOptions } from "@watchfire/cluster";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";

const codes: Readonly<Record<ClusterErrorCode, ErrorCode>> = {
  PORT_REFUSED: "WF_DEV_CLUSTER_PORT",
  STATE_LOCKED: "WF_DEV_CLUSTER_LOCKED",
  STATE_DAMAGED: "WF_DEV_CLUSTER_STATE",
  FILE_REFUSED: "WF_DEV_CLUSTER_FILES",
};

/**
 * Starts the embedded cluster. Its code is loaded only here, because it is not needed with another cluster.
 * @throws WatchfireError of the dev section, instead of the cluster's error
 */
export async function startEmbeddedCluster(options: ClusterOptions): Promise<Cluster> {
  const { ClusterError, startCluster } = await import("@watchfire/cluster");
  try {
    return await startCluster(options);
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const { what, file, line, port, cause } = error.fault;
    const place = file !== undefined && { place: { file, ...(line !== undefined && { line }) } };
    throw new WatchfireError(codes[error.code], { what, ...place, ...(port !== undefined && { actual: port }), cause });
  }
}
