import type { ErrorCode } from "../../base/errors.ts";
import type { SourceState } from "../../informer/fanout/observer.ts";

export const reasons = [
  /** It is being built and loaded; its first lists are being read; another replica is the active one. */
  "Starting",
  "CatchingUp",
  "Standby",
  /** A source's state. */
  "KindMissing",
  "Forbidden",
  "Degraded",
  "Unreachable",
  /** What its code and manifest lack, or a mistake in them. */
  "BuildFailed",
  "LoadFailed",
  "ManifestRefused",
  "DeploymentDamaged",
  "EnvironmentMissing",
  /** Positions cannot be saved: no handler starts. */
  "CheckpointFailing",
  /** Its share of the room for waiting events is used up: it takes no more until its handler has caught up. */
  "Backlogged",
  /** It takes more of the runtime's own time than its share, as with costly conditions: what it watches waits for its turns. */
  "Throttled",
  /** It reconciles as many keys as it may, those without an object above all: changes wait until it has fewer. */
  "KeysFull",
  /** The objects of its `reads` take more memory than they may: no handler starts. */
  "CacheFull",
  /** No executor can be started: no handler runs. */
  "ExecutorMissing",
  /** Its `resources.memory` is above the limit of the executors' container: a handler that uses it takes that down. */
  "ExecutorTooSmall",
  /** A change cannot be taken up, and the version before runs on. */
  "ChangeRefused",
  /** It runs alone, because it brought executors down. */
  "Quarantined",
  /** Its manifest or a command says that no handler begins: what happens waits. */
  "Paused",
  /** It stands still for some time, because it brought executors down again and again. */
  "Parked",
  "InternalError",
] as const;

/** Why something does not run as it should, in one word, as Kubernetes' conditions have it; the same wherever it is said. */
export type StatusReason = (typeof reasons)[number];

/** Why a source is not read; of any other state there is none. */
const ofStates: { readonly [state in SourceState]?: StatusReason } = {
  missing: "KindMissing",
  forbidden: "Forbidden",
  degraded: "Degraded",
  backoff: "Unreachable",
};

/** The first that fits. */
const ofCodes: readonly (readonly [RegExp, StatusReason])[] = [
  [/^WF_KUBE_FORBIDDEN$/, "Forbidden"],
  [/^WF_KUBE_/, "Unreachable"],
  [/^WF_BUNDLE_/, "BuildFailed"],
  [/^WF_MANIFEST_|^WF_FILTER_/, "ManifestRefused"],
  [/^WF_DEPLOYED_|^WF_BUILD_/, "DeploymentDamaged"],
  [/^WF_ACCESS_(?:ENV|OWN_OBJECT)$/, "EnvironmentMissing"],
  [/^WF_READS_/, "CacheFull"],
  [/^WF_CHECKPOINT_/, "CheckpointFailing"],
  [/^WF_SANDBOX_(?:NO_WARDEN|WARDEN_LOST|IMPOSTOR|EXECUTOR|CONTAINER_MEMORY)$/, "ExecutorMissing"],
  [/^WF_SANDBOX_CONTAINER_SMALL$/, "ExecutorTooSmall"],
  // Whatever else of it keeps a function from running came of loading its handler.
  [/^WF_SANDBOX_/, "LoadFailed"],
];

/** Undefined where nothing is wrong. `state`: a source's, or a trigger's as the status page has it. */
export const reasonOfState = (state: string): StatusReason | undefined => ofStates[state as SourceState];

export const reasonOfCode = (code: ErrorCode): StatusReason =>
  ofCodes.find(([pattern]) => pattern.test(code))?.[1] ?? "InternalError";
