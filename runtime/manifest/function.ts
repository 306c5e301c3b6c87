// A manifest as other rooms use it. Defaults are filled in, durations are milliseconds, sizes bytes.

/** One function, read from its manifest, checked and normalised. */
export interface FunctionManifest {
  /** DNS label; unique among the loaded functions. */
  readonly name: string;
  /** Path of the YAML file, below the folder as the user named it. */
  readonly file: string;
  /** The handler's absolute path. */
  readonly handler: string;
  /** Triggers that watch. */
  readonly triggers: readonly Trigger[];
  /** Triggers with a schedule. */
  readonly schedules: readonly Schedule[];
  /** Objects that the handler reads from memory, by `ctx.cache`; at most one entry per kind. */
  readonly reads: readonly CachedRead[];
  /** Memory for the objects of `reads` in this process, in bytes. */
  readonly cacheBytes: number;
  /** Limit of the function's own entries, `ctx.state`, in bytes. */
  readonly stateBytes: number;
  readonly permissions: readonly Permission[];
  readonly delivery: DeliverySettings;
  readonly resources: { readonly memoryBytes: number; readonly cpuPerEventMs: number };
  /**
   * State that an event can leave to the next inside the isolate: `Handler` keeps the module's state, `Event` keeps nothing.
   * Default Handler.
   */
  readonly isolation: "Handler" | "Event";
  /** Functions of one group share executors with each other only. Absent: the executors of all functions without a group. */
  readonly trustGroup?: string;
  readonly egress: readonly Egress[];
  readonly env: readonly EnvVar[];
  /** No handler begins, and events wait. Absent: the function runs. */
  readonly paused?: true;
  /** When this version is aborted while it is a canary. Absent: the defaults of `AbortRule`. */
  readonly canary?: { readonly abortWhen: AbortRule };
}

/** A canary is aborted if a larger part of its attempts fails than `failureRate`, and than of the current code's. */
export interface AbortRule {
  /** From 0 to 1; 1: never. Default 0.05. */
  readonly failureRate: number;
  /** Number of the canary's attempts before it is judged. Default 20. */
  readonly minRuns: number;
}

export const changeTypes = ["Added", "Modified", "Deleted"] as const;
export type ChangeType = (typeof changeTypes)[number];

/** Types of events: the changes of an object, and a scheduled time. */
export const eventTypes = [...changeTypes, "Scheduled"] as const;
export type EventType = (typeof eventTypes)[number];

/** Whether events of a type are changes of an object. Those of other types have no object. */
export const isChange = (type: EventType): type is ChangeType => (changeTypes as readonly EventType[]).includes(type);

/** The `apiVersion` in place of an object's, for events without an object. */
export const ownApiVersion = "watchfire.dev/v1alpha1";

export interface Trigger {
  /** Passed to the handler; unique within the function; default: the kind in lower case. */
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespaces: NamespaceScope;
  /** In the API's query form, canonical order; empty selects all. */
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly events: readonly EventType[];
  readonly initialEvents: "Deliver" | "Skip";
  /** Each field as its path's segments: `.metadata.labels` is ["metadata", "labels"]. Empty: any change. */
  readonly changedFields: readonly (readonly string[])[];
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
  /** Part of each object that events carry and that is read from the API server. Default Full. */
  readonly object: "Full" | "Metadata";
  /** Part of each known object that is stored, for `oldObject` and for deletions found after a gap. Default Full. */
  readonly lastBody: "Full" | "Metadata";
  /** In mode Reconcile: the keys that a change of an object wakes. Absent: the object's own namespace and name. */
  readonly key?: KeyRule;
}

/**
 * `owner`: the owners of this kind. `expression`: CEL that returns one or several names, as `namespace/name` or in the object's
 * own namespace. `all`: every existing object of the trigger without `key` that meets its conditions.
 */
export type KeyRule =
  | { readonly type: "owner"; readonly apiVersion: string; readonly kind: string }
  | { readonly type: "expression"; readonly expression: string }
  | { readonly type: "all" };

/** A trigger that fires at scheduled times. */
export interface Schedule {
  /** Passed to the handler; unique among the function's triggers; default `schedule`. */
  readonly name: string;
  /** Index in the manifest's list of triggers. */
  readonly index: number;
  readonly times: CronSchedule | IntervalSchedule;
  /** Largest delay of a run after its time, in milliseconds. */
  readonly jitterMs: number;
  /** Handling of times that passed without a run: one run for all of them, no run, or one run each. */
  readonly missed: "Once" | "Skip" | "All";
}

interface CronSchedule {
  readonly cron: string;
  /** IANA name. */
  readonly timeZone: string;
}

interface IntervalSchedule {
  readonly everyMs: number;
}

/** A selection of objects of one kind that are listed and watched. */
export type Selection = Pick<
  Trigger,
  "apiVersion" | "kind" | "namespaces" | "labelSelector" | "fieldSelector" | "object"
>;

/** Objects kept in memory for the handler, updated by a watch. */
export interface CachedRead extends Selection {
  readonly indexes: readonly ReadIndex[];
}

/** Index that finds objects without scanning all of them: by a field's value, or by each value of a list. */
export interface ReadIndex {
  readonly name: string;
  /** Segments of the field's path; `eachItem` among them leads into a list. */
  readonly field: readonly string[];
}

/**
 * Namespaces of a selection. `all`: one cluster-wide watch. `names`: one watch per namespace. `labels`: one watch per matching
 * namespace, updated as they change.
 */
export type NamespaceScope =
  | { readonly type: "all" }
  | { readonly type: "names"; readonly names: readonly string[] }
  | { readonly type: "labels"; readonly labelSelector: string };

/** RBAC's PolicyRule, and the namespaces in which it holds; without namespaces: everywhere, cluster-scoped objects included. */
export interface Permission {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly namespaces?: readonly string[];
}

export interface DeliverySettings {
  /** Most objects or keys handled concurrently. */
  readonly concurrency: number;
  readonly mode: "All" | "Latest" | "Reconcile";
  /** In a fleet: the number of slots over which keys are distributed; absent: one slot. */
  readonly shards?: number;
  /** Part of a key that determines its shard; absent: the whole key, in mode Reconcile its name. */
  readonly shardBy?: "Namespace";
  /**
   * In mode Reconcile: longest time between two runs of a key, in milliseconds. Absent: a key runs only when something wakes it.
   */
  readonly resyncMs?: number;
  /** An object, or a key, runs once nothing of it has changed for this long, in milliseconds; absent: at once. */
  readonly debounceMs?: number;
  /** Passes several events to the handler at once; absent: one by one. */
  readonly batch?: BatchSettings;
  readonly timeoutMs: number;
  readonly retry: {
    readonly maxAttempts: number;
    readonly initialDelayMs: number;
    readonly maxDelayMs: number;
    readonly factor: number;
  };
  readonly onFailure: "DeadLetter" | "Block" | "Drop";
  /** Limits of the stored dead letters. */
  readonly deadLetters: { readonly maxCount: number; readonly maxBytes: number };
}

export interface BatchSettings {
  /** Most events in one batch. */
  readonly maxSize: number;
  /** How long the first event of a batch waits for more, in milliseconds. */
  readonly maxWaitMs: number;
}

export interface Egress {
  /** In lower case; a literal address without brackets; `*.domain` for all names below it. */
  readonly host: string;
  readonly ports: readonly number[];
  /** Addresses that its names may resolve to: `Public` addresses only, or `Private` ones and the cluster's as well. */
  readonly network: "Public" | "Private";
}

/** core/v1 EnvVar: a value, or a reference that the parent resolves in the runtime's namespace. */
export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional: boolean };
  readonly configMapKeyRef?: { readonly name: string; readonly key: string; readonly optional: boolean };
}
