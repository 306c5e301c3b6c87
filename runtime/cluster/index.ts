// The package's door: a Kubernetes API server in this process.
export type { Clock, Timer } from "./clock.ts";
export { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";
export { ClusterError, type ClusterErrorCode } from "./cluster-error.ts";
