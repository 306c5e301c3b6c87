import { z } from "zod";
import * as names from "../kube/names.ts";
import { longestExpression, mostConditions } from "./condition-limits.ts";
import { duration } from "./duration-schema.ts";
import { fieldPathPattern, indexPathPattern, parseFieldPath, parseIndexPath } from "./field-path.ts";
import { permissionSchema } from "./permission-schema.ts";
import { parseSize, sizePattern } from "./quantity.ts";
import { scheduleSchema } from "./schedule-schema.ts";
import { fieldQuery } from "./selector.ts";
import { egressSchema, envSchema } from "./surroundings-schema.ts";

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
  name: z.string().regex(names.dnsLabel, { error: "expected a DNS label" }).describe("Shown where events are counted."),
  expression: z
    .string()
    .min(1)
    .max(longestExpression)
    .describe("CEL over `object` and `oldObject`; the event is delivered where every condition is true."),
});

const watch = z.strictObject({
  apiVersion: z
    .string()
    .regex(names.apiVersion, { error: "expected an API version such as v1 or apps/v1" })
    .describe("API version of the kind, such as v1, apps/v1 or my.domain/v1."),
  kind: z
    .string()
    .regex(names.kind, { error: "expected a kind such as ConfigMap" })
    .describe("Any served kind, custom resources included. One that is not installed yet is waited for."),
  namespaceSelector: namespaceSelector
    .optional()
    .describe("Namespaces by name or by label. Left out: all, and cluster-scoped kinds."),
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
    .describe("The changes that fire the trigger. Left out: all three."),
  initialEvents: z
    .enum(["Deliver", "Skip"])
    .default("Deliver")
    .describe("What happens to objects that exist when the function is first deployed."),
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
    .describe("What events carry of each object. Metadata: nothing else of it is read from the API server."),
  lastBody: z
    .enum(["Full", "Metadata"])
    .default("Full")
    .describe("What is kept of each object, for oldObject and for deletes found after a gap."),
});

const key = z.strictObject({
  owner: z
    .strictObject({ apiVersion: watch.shape.apiVersion, kind: watch.shape.kind })
    .optional()
    .describe("Owners of this kind, by ownerReferences. A change of an object without one wakes nobody."),
  expression: z
    .string()
    .min(1)
    .max(longestExpression)
    .optional()
    .describe("CEL over `object` that gives a name or a list: `namespace/name`, or a name in the object's namespace."),
});

const readIndex = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9]{0,62}$/, { error: "expected a name such as byNode" })
    .describe('The handler asks by it: `index: { byNode: "node-1" }`.'),
  field: z
    .string()
    .regex(indexPathPattern, { error: "expected a field path such as .spec.nodeName" })
    .refine((path) => !indexPathPattern.test(path) || parseIndexPath(path) !== undefined, {
      error: "expected a path that begins with a dot",
    })
    .describe(
      "Path of the value. Each text, number or boolean of a list is a value; `[*]` leads into a list's items: .metadata.ownerReferences[*].uid",
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
  kind: readKind.describe("Any served kind; one that is not installed is empty until it is. Each kind once."),
  ...readSelectors,
  object: watch.shape.object.describe(
    "What is kept of each object. Metadata: nothing else of it is read from the API server.",
  ),
  indexes: z
    .array(readIndex)
    .max(8)
    .default([])
    .describe("By what else than namespace and name objects are found at once."),
});

const trigger = z.strictObject({
  name: z
    .string()
    .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -" })
    .optional()
    .describe(
      "Told to the handler as event.trigger. Left out: the kind in lower case, or `schedule`. A new name for the same watch is a rename: the position goes on.",
    ),
  watch: watch.optional().describe("The changes that fire the trigger. A trigger has this or `schedule`."),
  schedule: scheduleSchema.optional().describe("The times that fire the trigger."),
  key: key
    .optional()
    .describe("Mode Reconcile: whom a change wakes, by owner or by expression. Left out: the object itself."),
});

const retry = z.strictObject({
  maxAttempts: z.int().min(1).max(1000).default(5).describe("Attempts in all, the first one included."),
  initialDelay: duration(longestDelayMs).default("1s").describe("Delay before the second attempt."),
  maxDelay: duration(longestDelayMs).default("5m").describe("Delays grow up to this."),
  factor: z.number().min(1).max(10).default(2).describe("Each delay is the one before times this, with jitter."),
});

const deadLetters = z.strictObject({
  maxCount: z.int().min(1).max(100_000).default(1000).describe("Beyond it the oldest are dropped."),
  maxSize: size(leastLetters, mostLetters, "4Mi to 64Gi")
    .default("64Mi")
    .describe(
      "Of all of them together. Beyond it the oldest lose their bodies, and can be looked at but not replayed.",
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
    .describe("Events of one batch at most. 4 MiB of objects end it as well."),
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
      "Latest: a Modified that waits is dropped when a newer one of its object arrives. Reconcile: one run a key at a time, for all that woke it.",
    ),
  shards: z
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe(
      "In a fleet (`--slots`): over how many slots the objects, or the keys, are spread. It stays as it was first until all replicas were gone. A runtime alone has all of them.",
    ),
  shardBy: z
    .enum(["Key", "Namespace"])
    .default("Key")
    .describe(
      "What says which shard has an object. Key: its namespace and name, in mode Reconcile the key's name. Namespace: its namespace alone, so that no replica watches the chosen namespaces of another's shard. It stays as it was first until all replicas were gone.",
    ),
  resync: duration(longestResyncMs)
    .optional()
    .describe("Mode Reconcile: every key runs once in this time, also where nothing changed. Left out: it does not."),
  debounce: duration(longestDebounceMs)
    .optional()
    .describe(
      "Quiet time of an object, or a key, before a run, at most 60s. One that changes on and on runs after ten times that, or 60s.",
    ),
  batch: batch
    .optional()
    .describe(
      "The handler gets a list of events, each of another object. `timeout` and `cpuPerEvent` hold for all of it.",
    ),
  timeout: duration(longestTimeoutMs).default("30s").describe("Wall-clock limit of one attempt."),
  retry: retry.prefault({}).describe("How failed attempts are tried again."),
  onFailure: z
    .enum(["DeadLetter", "Block", "Drop"])
    .default("DeadLetter")
    .describe(
      "What happens to an event whose attempts are used up: kept for replay, blocks its object, or is dropped.",
    ),
  deadLetters: deadLetters.prefault({}).describe("What is kept of events that were given up."),
});

const resources = z.strictObject({
  memory: size(leastMemory, mostMemory, "8Mi to 2Gi")
    .default("64Mi")
    .describe("Heap limit of the handler's isolate, at least 8Mi."),
  cache: size(leastCache, mostCache, "1Mi to 8Gi")
    .default("64Mi")
    .describe("What the objects of `reads` may take of the runtime's memory. Beyond it the function stands still."),
  cpuPerEvent: duration(longestTimeoutMs).default("500ms").describe("CPU time that one event may use."),
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
    .describe("What fires the function."),
  reads: z
    .array(read)
    .max(20)
    .default([])
    .describe("Objects that are kept in memory for the handler, current by a watch: `ctx.cache`."),
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
    .describe("Handler: events share the module's state, until the isolate is replaced. Event: each starts afresh."),
  trustGroup: z
    .string()
    .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -" })
    .optional()
    .describe("Functions of one group share executor processes with nobody else. Left out: with all that name none."),
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
      "Values that the handler finds in ctx.env. A change of a Secret or ConfigMap is taken up within 30 s, by a fresh isolate.",
    ),
  paused: z
    .boolean()
    .default(false)
    .describe("No handler begins while it is true. Positions stand, and what happens meanwhile waits in order."),
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
          .regex(names.dnsLabel, { error: "expected a DNS label: lower-case letters, digits and -" })
          .describe("Unique among the functions. Names the checkpoint: a renamed function is a new one."),
      })
      .describe("The function's name."),
    spec: spec.describe("What fires it, what it runs, and what it may do."),
  })
  .describe("A Watchfire function: a handler and the changes that fire it.");

/** A manifest of valid shape, with defaults filled in. */
export type CheckedManifest = z.output<typeof manifestSchema>;
