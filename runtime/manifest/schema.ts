import { z } from "zod";
import * as names from "../kube/names.ts";
import { dnsLabel, dnsSubdomain, objectName } from "../kube/names.ts";
import { longestExpression, mostConditions } from "./condition-limits.ts";
import { duration } from "./duration-schema.ts";
import { fieldPathPattern, indexPathPattern, parseFieldPath, parseIndexPath } from "./field-path.ts";
import { parseSize, sizePattern } from "./quantity.ts";
import { scheduleSchema } from "./schedule.ts";
import { fieldQuery } from "./selector.ts";
import { egressSchema, envSchema } from "./surroundings-schema.ts";

/** Verbs of the handler's client; watching is done by triggers. */
const verbs = ["get", "list", "create", "update", "patch", "delete", "*"] as const;

/** A plural, `plural/subresource`, `*`, or `*` with a subresource, as in RBAC. */
const resource = /^(?:\*|[a-z0-9][a-z0-9.-]*)(?:\/(?:\*|[a-z][a-z0-9-]*))?$/;

const list = <Item extends z.ZodType>(item: Item) =>
  z.array(item).min(1, { error: "expected at least one; an empty list grants nothing" }).max(100);

/** RBAC's PolicyRule and the namespaces in which it holds. */
export const permissionSchema = z.strictObject({
  apiGroups: list(
    z
      .string()
      .refine(
        (group) =>
          group === "" || group === "*" || (dnsSubdomain.test(group) && !/^(?:v\d[a-z0-9]*|core)$/.test(group)),
        {
          error: 'expected an API group without its version, such as "" (core) or apps',
        },
      ),
  ).describe('API groups without version; "" is the core group, "*" all.'),
  resources: list(
    z.string().regex(resource, { error: "expected a plural in lower case, such as configmaps or deployments/scale" }),
  ).describe('Plurals, such as configmaps or deployments/scale; "*" is all.'),
  verbs: list(z.enum(verbs)).describe("The allowed verbs."),
  resourceNames: list(z.string().regex(objectName, { error: "expected an object's name" }))
    .optional()
    .describe(
      "Only objects with these names. Such a rule allows a list only with fieldSelector metadata.name=NAME, and does not allow create.",
    ),
  namespaces: list(z.string().regex(dnsLabel, { error: "expected a namespace's name" }))
    .optional()
    .describe("Only in these namespaces. Default: everywhere, including cluster-scoped objects."),
});

export const apiVersion = "watchfire.dev/v1alpha1";

/** Limit of lists, far above any real one, so that a manifest cannot make the runtime's tables grow without bound. */
const listLimit = 100;
/** Longest attempt, in milliseconds: an hour. Longer work belongs into a Job that the handler creates. */
const longestTimeoutMs = 3_600_000;
const longestDelayMs = 24 * 3_600_000;
const longestResyncMs = 30 * longestDelayMs;
/** Smallest memory of an isolate, in bytes; isolated-vm refuses less. */
const leastMemory = 8 * 2 ** 20;
const mostMemory = 2 * 2 ** 30;

/** Smallest memory for `reads` in the parent, in bytes. */
const leastCache = 2 ** 20;
const mostCache = 8 * 2 ** 30;
/** Own entries are in memory, and in journals whose whole content is a few MiB. In bytes. */
const leastState = 2 ** 10;
const mostState = 2 ** 20;

/**
 * Smallest space for dead letters, in bytes. The largest object that etcd accepts by default has 1.5 MiB; a dead letter may
 * contain two.
 */
const leastLetters = 4 * 2 ** 20;
const mostLetters = 64 * 2 ** 30;

const size = (least: number, most: number, range: string) =>
  z
    .string()
    .regex(sizePattern, { error: "expected a size such as 64Mi" })
    .refine((text) => !sizePattern.test(text) || inRange(parseSize(text), least, most), {
      error: `expected ${range}, in whole bytes`,
    });

const inRange = (bytes: number | undefined, least: number, most: number): boolean =>
  bytes !== undefined && bytes >= least && bytes <= most;

const labelSelectorShape = {
  matchLabels: z.record(z.string(), z.string()).optional().describe("Labels that must have exactly these values."),
  matchExpressions: z
    .array(
      z.strictObject({
        key: z.string().describe("The label's key."),
        operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).describe("How the label is compared."),
        values: z.array(z.string()).max(listLimit).optional().describe("For In and NotIn: the values."),
      }),
    )
    .max(listLimit)
    .optional()
    .describe("Requirements that must all hold."),
};

const labelSelector = z.strictObject(labelSelectorShape);

const namespaceSelector = z.strictObject({
  matchNames: z
    .array(z.string().regex(names.dnsLabel, { error: "expected a namespace's name" }))
    .min(1, { error: "expected at least one namespace" })
    .max(listLimit)
    .optional()
    .describe("Namespaces by name: one watch in each. Not together with labels."),
  ...labelSelectorShape,
});

/** Accepts `ADDED`, as in a watch, and `added` for `Added`. */
const changeType = z.preprocess(
  (value) =>
    typeof value === "string" && /^(?:[A-Z]+|[a-z]+)$/.test(value)
      ? `${value.charAt(0).toUpperCase()}${value.slice(1).toLowerCase()}`
      : value,
  z.enum(["Added", "Modified", "Deleted"]),
);

const matchCondition = z.strictObject({
  name: z
    .string()
    .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -, at most 63" })
    .describe("Shown where events are counted."),
  expression: z
    .string()
    .min(1)
    .max(longestExpression)
    .describe("CEL over `object` and `oldObject`. The event is delivered if every condition is true."),
});

const watch = z.strictObject({
  apiVersion: z
    .string()
    .regex(names.apiVersion, { error: "expected an API version such as v1 or apps/v1" })
    .describe("API version of the kind, such as v1, apps/v1 or my.domain/v1."),
  kind: z
    .string()
    .regex(names.kind, { error: "expected a kind such as ConfigMap" })
    .describe("Any served kind, including custom resources. The runtime waits for a kind that is not installed yet."),
  namespaceSelector: namespaceSelector
    .optional()
    .describe("Namespaces by name or by label. Default: all namespaces, and cluster-scoped kinds."),
  labelSelector: labelSelector.optional().describe("metav1.LabelSelector; evaluated by the API server."),
  fieldSelector: z
    .string()
    .refine((text) => fieldQuery(text) !== undefined, {
      error: "expected terms such as metadata.name=settings, joined by commas",
    })
    .optional()
    .describe("Field selector as kubectl takes it: metadata.name!=kube-root-ca.crt"),
  events: z
    .array(changeType)
    .min(1, { error: "expected at least one of Added, Modified, Deleted" })
    .max(3)
    .default(["Added", "Modified", "Deleted"])
    .describe("The changes that fire the trigger. Default: all three."),
  initialEvents: z
    .enum(["Deliver", "Skip"])
    .default("Deliver")
    .describe("Whether objects that exist when the function is first deployed are delivered as Added events."),
  changedFields: z
    .array(
      z
        .string()
        .regex(fieldPathPattern, { error: "expected a field path such as .data or .metadata.labels" })
        .refine((path) => !fieldPathPattern.test(path) || parseFieldPath(path) !== undefined, {
          error: "expected a path that begins with a dot",
        }),
    )
    .max(listLimit)
    .default([])
    .describe("Modified fires only if one of these fields changed. Empty: any change."),
  matchConditions: z
    .array(matchCondition)
    .max(mostConditions)
    .default([])
    .describe(
      "CEL conditions on the object; all of them must hold. They choose events, as labelSelector chooses objects.",
    ),
  object: z
    .enum(["Full", "Metadata"])
    .default("Full")
    .describe("How much of each object an event contains. Metadata: only the metadata is read from the API server."),
  lastBody: z
    .enum(["Full", "Metadata"])
    .default("Full")
    .describe("How much of each object is stored, for oldObject and for deletes found after a gap."),
});

const key = z.strictObject({
  owner: z
    .strictObject({ apiVersion: watch.shape.apiVersion, kind: watch.shape.kind })
    .optional()
    .describe("Owners of this kind, by ownerReferences. A change of an object without such an owner starts no run."),
  expression: z
    .string()
    .min(1)
    .max(longestExpression)
    .optional()
    .describe(
      "CEL over `object` that returns a name or a list of names: `namespace/name`, or a name in the object's namespace.",
    ),
  all: z
    .literal(true, { error: "expected true" })
    .optional()
    .describe("Every existing object that meets the conditions of the trigger without `key`, as for a schedule."),
});

const readIndex = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9]{0,62}$/, { error: "expected a name such as byNode" })
    .describe('Name of the index, by which the handler reads it: `index: { byNode: "node-1" }`.'),
  field: z
    .string()
    .regex(indexPathPattern, { error: "expected a field path such as .spec.nodeName" })
    .refine((path) => !indexPathPattern.test(path) || parseIndexPath(path) !== undefined, {
      error: "expected a path that begins with a dot",
    })
    .describe(
      "Path of the indexed value. For a list, each text, number or boolean in it is indexed. `[*]` leads into a list's items: .metadata.ownerReferences[*].uid",
    ),
});

const {
  apiVersion: readApiVersion,
  kind: readKind,
  ...readSelectors
} = watch.pick({
  apiVersion: true,
  kind: true,
  namespaceSelector: true,
  labelSelector: true,
  fieldSelector: true,
}).shape;

const read = z.strictObject({
  apiVersion: readApiVersion,
  kind: readKind.describe("Any served kind. Until it is installed, the read is empty. Each kind may appear once."),
  ...readSelectors,
  object: watch.shape.object.describe(
    "How much of each object is kept. Metadata: only the metadata is read from the API server.",
  ),
  indexes: z
    .array(readIndex)
    .max(8)
    .default([])
    .describe("Further values, besides namespace and name, by which objects are looked up without a scan."),
});

const trigger = z.strictObject({
  name: z
    .string()
    .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -, at most 63" })
    .optional()
    .describe(
      "The handler reads it as event.trigger. Default: the kind in lower case, or `schedule`. A new name for the same watch is a rename: the checkpoint is kept.",
    ),
  watch: watch.optional().describe("The changes that fire the trigger. A trigger has this or `schedule`."),
  schedule: scheduleSchema.optional().describe("The times that fire the trigger."),
  key: key
    .optional()
    .describe(
      "Mode Reconcile: the keys for which a change starts a run, by owner or by expression. Default: the object itself.",
    ),
});

const retry = z.strictObject({
  maxAttempts: z.int().min(1).max(1000).default(5).describe("Number of attempts, including the first."),
  initialDelay: duration(longestDelayMs).default("1s").describe("Delay before the second attempt."),
  maxDelay: duration(longestDelayMs).default("5m").describe("Limit of the delay."),
  factor: z
    .number()
    .min(1)
    .max(10)
    .default(2)
    .describe("Each delay is the previous one times this factor, with jitter."),
});

const deadLetters = z.strictObject({
  maxCount: z
    .int()
    .min(1)
    .max(100_000)
    .default(1000)
    .describe("Maximum number of dead letters. Beyond it the oldest are dropped."),
  maxSize: size(leastLetters, mostLetters, "4Mi to 64Gi")
    .default("64Mi")
    .describe(
      "Maximum size of all dead letters together. Beyond it the oldest lose their bodies: they can still be listed, but not replayed.",
    ),
});

/** Longest debounce, in milliseconds. Events that wait longer are written to disk, so that the checkpoint can advance. */
const longestDebounceMs = 60_000;

/** Longest wait of a batch, in milliseconds; more would be late for whoever reads the result. */
const longestBatchWaitMs = 60_000;

const batch = z.strictObject({
  maxSize: z
    .int()
    .min(2)
    .max(1000)
    .default(100)
    .describe("Maximum number of events in one batch. A batch also ends at 4 MiB of objects."),
  maxWait: duration(longestBatchWaitMs)
    .default("1s")
    .describe("How long the first event of a batch waits for more, at most 60s."),
});

const delivery = z.strictObject({
  concurrency: z
    .int()
    .min(1)
    .max(1000)
    .default(4)
    .describe("Objects handled in parallel; one object's events are always in order."),
  mode: z
    .enum(["All", "Latest", "Reconcile"])
    .default("All")
    .describe(
      "Latest: a waiting Modified event is dropped when a newer one of its object arrives. Reconcile: one run per key at a time, for all changes since the last run.",
    ),
  shards: z
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe(
      "In a fleet (`--slots`): the number of slots over which the objects, or the keys, are spread. It cannot change until all replicas have ended. A single runtime has all slots.",
    ),
  shardBy: z
    .enum(["Key", "Namespace"])
    .default("Key")
    .describe(
      "The value that assigns an object to a shard. Key: its namespace and name; in mode Reconcile, the key's name. Namespace: only its namespace, so that a replica watches only the selected namespaces of the shards that it holds. It cannot change until all replicas have ended.",
    ),
  resync: duration(longestResyncMs)
    .optional()
    .describe(
      "Mode Reconcile: every key whose object meets the conditions runs at least once in this time, even without a change. Default: no such runs.",
    ),
  debounce: duration(longestDebounceMs)
    .optional()
    .describe(
      "Time without changes of an object, or a key, before a run, at most 60s. If changes do not stop, it runs after ten times that, or 60s.",
    ),
  batch: batch
    .optional()
    .describe(
      "The handler receives a list of events, each of a different object. `timeout` and `cpuPerEvent` apply to the whole list.",
    ),
  timeout: duration(longestTimeoutMs).default("30s").describe("Wall-clock limit of one attempt."),
  retry: retry.prefault({}).describe("Retries of failed attempts."),
  onFailure: z
    .enum(["DeadLetter", "Block", "Drop"])
    .default("DeadLetter")
    .describe(
      "Handling of an event whose attempts are used up: it is kept for replay, blocks its object, or is dropped.",
    ),
  deadLetters: deadLetters.prefault({}).describe("Limits of the dead letters that are kept."),
});

const resources = z.strictObject({
  memory: size(leastMemory, mostMemory, "8Mi to 2Gi")
    .default("64Mi")
    .describe("Heap limit of the handler's isolate, at least 8Mi."),
  cache: size(leastCache, mostCache, "1Mi to 8Gi")
    .default("64Mi")
    .describe("Memory limit for the objects of `reads` in the runtime. Beyond it the function is suspended."),
  state: size(leastState, mostState, "1Ki to 1Mi")
    .default("64Ki")
    .describe("Limit of the function's own entries (`ctx.state`) in the store, with keys and 32 bytes for each."),
  cpuPerEvent: duration(longestTimeoutMs).default("500ms").describe("CPU time limit of one event."),
});

const canary = z.strictObject({
  abortWhen: z
    .strictObject({
      failureRate: z
        .number()
        .min(0)
        .max(1)
        .default(0.05)
        .describe(
          "The canary is aborted once more than this part of its attempts has failed, and a larger part than of the current code's. 1: never.",
        ),
      minRuns: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(20)
        .describe("Number of the canary's attempts before it is judged."),
    })
    .prefault({})
    .describe("When the runtime gives all keys back to the current code, without a command."),
});

const spec = z.strictObject({
  handler: z
    .string()
    .regex(/\.(?:ts|mts|js|mjs)$/, { error: "expected a .ts, .mts, .js or .mjs file" })
    .describe("The file whose default export handles the events, relative to the manifest."),
  triggers: z
    .array(trigger)
    .min(1, { error: "expected at least one trigger" })
    .max(listLimit)
    .describe("The changes and times that fire the function."),
  reads: z
    .array(read)
    .max(20)
    .default([])
    .describe("Objects that a watch keeps current in memory for the handler: `ctx.cache`."),
  permissions: z
    .array(permissionSchema)
    .max(listLimit)
    .default([])
    .describe("RBAC rules: the only powers of the handler's client."),
  delivery: delivery.prefault({}).describe("Order, parallelism, time and retries."),
  resources: resources.prefault({}).describe("Limits of the sandbox."),
  isolation: z
    .enum(["Handler", "Event"])
    .default("Handler")
    .describe(
      "Handler: events share the module's state until the isolate is replaced. Event: each event starts with a new isolate.",
    ),
  trustGroup: z
    .string()
    .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -, at most 63" })
    .optional()
    .describe(
      "Functions of a group share executor processes only with each other. Default: the group of all functions without a `trustGroup`.",
    ),
  egress: z
    .array(egressSchema)
    .max(listLimit)
    .default([])
    .describe("Hosts that the handler's fetch may reach. None by default."),
  env: z
    .array(envSchema)
    .max(listLimit)
    .default([])
    .describe(
      "Values that the handler reads from ctx.env. A change of a Secret or ConfigMap takes effect within 30 s, in a new isolate.",
    ),
  canary: canary
    .optional()
    .describe(
      "How this version is judged while it is a canary (`watchfire deploy --canary`). Default: by the defaults.",
    ),
  paused: z
    .boolean()
    .default(false)
    .describe("While true, no attempt starts. Events wait in order; the checkpoint moves only past stored events."),
});

/** Schema of a manifest as the user writes it; strict throughout. Rules between fields are in rules.ts. */
export const manifestSchema = z
  .strictObject({
    apiVersion: z.literal(apiVersion).describe("Version of this format."),
    kind: z.literal("Function").describe("Always Function."),
    metadata: z
      .strictObject({
        name: z
          .string()
          .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -, at most 63" })
          .describe("Unique among the functions. Names the checkpoint: a renamed function is a new one."),
      })
      .describe("The function's name."),
    spec: spec.describe("The function's triggers, handler, permissions and limits."),
  })
  .describe("A Watchfire function: a handler and the changes that fire it.");

/** A manifest of valid shape, with defaults filled in. */
export type CheckedManifest = z.output<typeof manifestSchema>;
