// Entry point of the package: a Kubernetes API server in this process.

export { type Cluster, type ClusterOptions, startCluster } from "./boot/cluster.ts";
export type { Clock, Timer } from "./clock.ts";
export { ClusterError, type ClusterErrorCode } from "./cluster-error.ts";
