import type { ErrorCode } from "../../base/errors.ts";
import type { SourceState } from "../../informer/fanout/observer.ts";

export const reasons = [
  /** It is being built and loaded; its first lists are being read; another replica is the active one. */
  "Starting",
  "CatchingUp",
  "Standby",
  /** States of a source. */
  "KindMissing",
  "Forbidden",
  "Degraded",
  "Unreachable",
  /** Something is missing or wrong in its code, manifest or environment. */
  "BuildFailed",
  "LoadFailed",
  "ManifestRefused",
  "DeploymentDamaged",
  "EnvironmentMissing",
  /** Checkpoints cannot be saved, so no handler starts. */
  "CheckpointFailing",
  /** Its share of the room for waiting events is used up. It receives no more until its handler has caught up. */
  "Backlogged",
  /**
   * It takes more than its share of the runtime's own time, for example with expensive conditions. Its sources are read more
   * slowly.
   */
  "Throttled",
  /**
   * It reconciles the maximum number of keys, usually because of many keys without an object. Changes wait until there are fewer.
   */
  "KeysFull",
  /** The objects of its `reads` exceed a memory limit, so no handler starts. */
  "CacheFull",
  /** No executor can be started, so no handler runs. */
  "ExecutorMissing",
  /**
   * Its `resources.memory` exceeds the limit of the executors' container. A handler that uses that much would crash the
   * container.
   */
  "ExecutorTooSmall",
  /** A change cannot be applied; the version before it continues to run. */
  "ChangeRefused",
  /** The runtime has aborted its canary; its current code gets all keys. */
  "CanaryAborted",
  /** It runs alone, because it ended executors. */
  "Quarantined",
  /** Its manifest or a command says that no handler starts. Events wait. */
  "Paused",
  /** It is gone from the functions; its checkpoints are kept for some time. */
  "Suspended",
  /** It does not run for some time, because it ended executors repeatedly. */
  "Parked",
  "InternalError",
] as const;

/**
 * One-word reason why something does not run as it should, in the style of Kubernetes' conditions. The same reasons are used
 * everywhere.
 */
export type StatusReason = (typeof reasons)[number];

/** Reasons for the states in which a source is not read. */
const ofStates: { readonly [state in SourceState]?: StatusReason } = {
  missing: "KindMissing",
  forbidden: "Forbidden",
  degraded: "Degraded",
  backoff: "Unreachable",
};

/** Reasons by error code. The first match applies. */
const ofCodes: readonly (readonly [RegExp, StatusReason])[] = [
  [/^WF_KUBE_FORBIDDEN$|^WF_DEPLOYED_FORBIDDEN$/, "Forbidden"],
  [/^WF_KUBE_/, "Unreachable"],
  [/^WF_BUNDLE_/, "BuildFailed"],
  [/^WF_MANIFEST_|^WF_FILTER_/, "ManifestRefused"],
  [/^WF_DEPLOYED_|^WF_BUILD_/, "DeploymentDamaged"],
  [/^WF_ACCESS_(?:ENV|OWN_OBJECT)$/, "EnvironmentMissing"],
  [/^WF_READS_/, "CacheFull"],
  [/^WF_CHECKPOINT_/, "CheckpointFailing"],
  [/^WF_SANDBOX_(?:NO_WARDEN|WARDEN_LOST|IMPOSTOR|EXECUTOR|CONTAINER_MEMORY)$/, "ExecutorMissing"],
  [/^WF_SANDBOX_CONTAINER_SMALL$/, "ExecutorTooSmall"],
  // All remaining sandbox errors that keep a function from running are errors of loading its handler.
  [/^WF_SANDBOX_/, "LoadFailed"],
];

/** Returns `undefined` if nothing is wrong. `state`: a source's, or a trigger's from the status page. */
export const reasonOfState = (state: string): StatusReason | undefined => ofStates[state as SourceState];

export const reasonOfCode = (code: ErrorCode): StatusReason =>
  ofCodes.find(([pattern]) => pattern.test(code))?.[1] ?? "InternalError";
