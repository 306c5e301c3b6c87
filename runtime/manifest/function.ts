// Door: what the rooms downstream know of a manifest. Defaults are filled in, durations are milliseconds, sizes bytes.

/** One function, read from its manifest, checked and normalised. */
export interface FunctionManifest {
  /** DNS label; unique among the loaded functions. */
  readonly name: string;
  /** The YAML file, as the user named the folder. */
  readonly file: string;
  /** The handler's absolute path. */
  readonly handler: string;
  /** Those that watch. */
  readonly triggers: readonly Trigger[];
  /** Those that go by the clock. */
  readonly schedules: readonly Schedule[];
  /** What the handler reads from memory, by `ctx.cache`; at most one of each kind. */
  readonly reads: readonly CachedRead[];
  /** Bytes that the objects of `reads` may take in this process. */
  readonly cacheBytes: number;
  readonly permissions: readonly Permission[];
  readonly delivery: DeliverySettings;
  readonly resources: { readonly memoryBytes: number; readonly cpuPerEventMs: number };
  /** What one event leaves to the next inside the isolate: the module's state, or nothing. Default Handler. */
  readonly isolation: "Handler" | "Event";
  /** Functions of one group have executors that nobody else shares. Left out: those of all functions that name none. */
  readonly trustGroup?: string;
  readonly egress: readonly Egress[];
  readonly env: readonly EnvVar[];
  /** No handler begins; what happens waits. Absent: it runs. */
  readonly paused?: true;
}

export type ChangeType = "Added" | "Modified" | "Deleted";

/** A change of an object, or a time that has come. */
export type EventType = ChangeType | "Scheduled";

export interface Trigger {
  /** Echoed to the handler; unique within the function; defaults to the kind in lower case. */
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
  /** What events carry of each object, and all that is read of it. Default Full. */
  readonly object: "Full" | "Metadata";
  /** What is kept of each known object for `oldObject` and for deletes found after a gap. Default Full. */
  readonly lastBody: "Full" | "Metadata";
  /** Whom a change of its objects wakes, in mode Reconcile. Left out: the object's own namespace and name. */
  readonly key?: KeyRule;
}

/** `owner`: the owners of this kind. `expression`: CEL that gives a name or several, `namespace/name` or in the object's own namespace. */
export type KeyRule =
  | { readonly type: "owner"; readonly apiVersion: string; readonly kind: string }
  | { readonly type: "expression"; readonly expression: string };

/** A trigger that fires by the clock. */
export interface Schedule {
  /** Echoed to the handler; unique among the function's triggers; defaults to `schedule`. */
  readonly name: string;
  /** Where it stands in the manifest's list of triggers. */
  readonly index: number;
  readonly times: CronSchedule | IntervalSchedule;
  /** A run comes up to so much later than its time. */
  readonly jitterMs: number;
  /** What becomes of times that passed without a run: one run for all of them, none, or one each. */
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

/** The objects of a kind that somebody reads. */
export type Selection = Pick<
  Trigger,
  "apiVersion" | "kind" | "namespaces" | "labelSelector" | "fieldSelector" | "object"
>;

/** Objects that are kept in memory for the handler, current by a watch. */
export interface CachedRead extends Selection {
  readonly indexes: readonly ReadIndex[];
}

/** By what a handler finds objects without a look at all of them: a field's value, or each of a list's. */
export interface ReadIndex {
  readonly name: string;
  /** Segments of the field's path. */
  readonly field: readonly string[];
}

/** `all`: one cluster-wide watch. `names`: one per namespace. `labels`: one per namespace that matches, followed as they change. */
export type NamespaceScope =
  | { readonly type: "all" }
  | { readonly type: "names"; readonly names: readonly string[] }
  | { readonly type: "labels"; readonly labelSelector: string };

/** RBAC's PolicyRule, and the namespaces it holds in; no namespaces: everywhere, cluster-scoped objects included. */
export interface Permission {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly namespaces?: readonly string[];
}

export interface DeliverySettings {
  /** Lanes that may run at once. */
  readonly concurrency: number;
  readonly mode: "All" | "Latest" | "Reconcile";
  /** In a fleet: over how many slots keys are spread; left out: all are in one. */
  readonly shards?: number;
  /** What of a key says which shard has it; left out: all of it, in mode Reconcile its name. */
  readonly shardBy?: "Namespace";
  /** In mode Reconcile: each key runs once in so many milliseconds at least. Left out: only when something wakes it. */
  readonly resyncMs?: number;
  /** An object, or a key, runs once nothing of it changed for so long; left out: at once. */
  readonly debounceMs?: number;
  /** Events are handed over several at once; left out: one by one. */
  readonly batch?: BatchSettings;
  readonly timeoutMs: number;
  readonly retry: {
    readonly maxAttempts: number;
    readonly initialDelayMs: number;
    readonly maxDelayMs: number;
    readonly factor: number;
  };
  readonly onFailure: "DeadLetter" | "Block" | "Drop";
  /** What of the events that were given up is kept. */
  readonly deadLetters: { readonly maxCount: number; readonly maxBytes: number };
}

export interface BatchSettings {
  /** Events of one batch at most. */
  readonly maxSize: number;
  /** How long the first event of a batch waits for more. */
  readonly maxWaitMs: number;
}

export interface Egress {
  /** In lower case; a literal address without brackets; `*.domain` for all names below it. */
  readonly host: string;
  readonly ports: readonly number[];
  /** Where its names may lead: to public addresses alone, or to private ones and the cluster's as well. */
  readonly network: "Public" | "Private";
}

/** core/v1 EnvVar: a value, or a reference that the parent resolves in the runtime's namespace. */
export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional: boolean };
  readonly configMapKeyRef?: { readonly name: string; readonly key: string; readonly optional: boolean };
}
