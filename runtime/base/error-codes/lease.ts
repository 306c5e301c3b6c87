import { type ErrorEntry, system, user } from "./entry.ts";

/** Errors of the Lease, of replicas and of slots. */
export const leaseCodes = {
  WF_LEASE_LOST: system(
    "the Lease could not be renewed in time, or another replica has taken it",
    "start it again, as a pod's restart does: it works once it holds one again; if it happens often, check the API server's latency",
  ),
  WF_LEASE_UNWRITTEN: system(
    "a held Lease cannot be annotated, which is retried",
    "fix the cause that the API server names: the account needs `update` of leases in the runtime's namespace, and an object's annotations are limited to 256 KiB",
  ),
  WF_LEASE_SHARDS: user(
    "a function that has checkpoints is to be spread differently",
    "write the `shards`, `shardBy` and `mode` that it runs with; or end all replicas and start them again, which redistributes the checkpoints",
  ),
  WF_LEASE_STANDBY: user("this replica is a standby", "ask the active one, which the Lease names"),
} as const satisfies Record<string, ErrorEntry>;
