import { Dice } from "../../laws/random.ts";
import { most } from "./limits.ts";
import type { Files } from "./neighbours.ts";

/** The `spec` of a manifest as a user writes it. */
export type Spec = Readonly<Record<string, unknown>>;

/** A manifest that uses some fields up to their limits, with its handler. */
export interface Greedy {
  readonly leansOn: string;
  readonly spec: Spec;
  readonly handler: string;
}

const quiet = "export default async () => {};\n";
const throwing = 'export default async () => {\n  throw new Error("again");\n};\n';
const requeueing =
  'import { defineReconciler, requeueAfter } from "@watchfire/sdk";\nexport default defineReconciler(async () => requeueAfter("24h"));\n';

const times = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));
/** A DNS label of maximum length. */
const label = (name: string): string => `${name}-${"x".repeat(62)}`.slice(0, 62).concat("z");
const inTick = { namespaceSelector: { matchNames: ["tick"] } };
const configMaps = { apiVersion: "v1", kind: "ConfigMap" };
const text = "spec.triggers[].watch.matchConditions[].expression";

/**
 * A condition of which `among` together cost nearly a trigger's limit. Each differs, so that no two share a cached value.
 */
function costly(number: number, among: number): string {
  const side = Math.floor(Math.sqrt(400_000 / 8 / among)) + 10;
  return `lists.range(${side}).all(a, lists.range(${side}).all(b, a + b < ${1_000_000 + number}))`;
}

/** An expression of maximum length that every object meets. */
function longest(number: number): string {
  const before = `object.metadata.name != 'x${number}' && '`;
  const after = "' != ''";
  return before + "y".repeat(most(text) - before.length - after.length) + after;
}

const conditions = (count: number, expression: (at: number) => string) =>
  times(count, (at) => ({ name: label(`c${at}`), expression: expression(at) }));

const requirements = (dice: Dice, path: string) => ({
  matchLabels: { [`greedy.example/${"k".repeat(63)}`]: "v".repeat(63) },
  matchExpressions: times(most(`${path}.matchExpressions`), (at) => ({
    key: `greedy.example/k${at}`,
    operator: "NotIn",
    values: times(dice.pick([1, 3]), (value) => `v${value}`),
  })),
});

/** One requirement with the maximum number of values. */
const values = (path: string) => ({
  matchExpressions: [
    {
      key: "greedy.example/key",
      operator: "NotIn",
      values: times(most(`${path}.matchExpressions[].values`), (at) => `v${at}`),
    },
  ],
});

const delivery = (dice: Dice, more: object = {}) => ({
  concurrency: most("spec.delivery.concurrency"),
  shards: most("spec.delivery.shards"),
  shardBy: dice.pick(["Key", "Namespace"]),
  timeout: "1h",
  retry: {
    maxAttempts: most("spec.delivery.retry.maxAttempts"),
    initialDelay: "1ms",
    maxDelay: "24h",
    factor: most("spec.delivery.retry.factor"),
  },
  deadLetters: { maxCount: most("spec.delivery.deadLetters.maxCount"), maxSize: "64Gi" },
  ...more,
});

const resources = { memory: "2Gi", cache: "8Gi", cpuPerEvent: "1h", state: "1Mi" };

const ruleLists = ["apiGroups", "resources", "verbs", "resourceNames", "namespaces"] as const;

/** Kinds for reads, each once. The runtime waits for those that are not served. */
const kinds = [
  ...["ConfigMap", "ServiceAccount", "Service", "Pod", "Endpoints", "Namespace", "Node", "PersistentVolume"],
  ...["PersistentVolumeClaim", "ReplicationController", "ResourceQuota", "LimitRange", "PodTemplate", "Event"],
].map((kind) => ({ apiVersion: "v1", kind }));
const appKinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision", "Unheard"].map(
  (kind) => ({ apiVersion: "apps/v1", kind }),
);

const leans: Readonly<Record<string, (dice: Dice) => Omit<Greedy, "leansOn">>> = {
  "costly conditions of all triggers": (dice) => ({
    handler: quiet,
    spec: {
      triggers: times(most("spec.triggers"), (at) => {
        // All conditions together have a limit as well.
        const count = at < 40 ? dice.pick([4, most("spec.triggers[].watch.matchConditions")]) : 4;
        const matchConditions = conditions(count, (condition) => costly(at * 100 + condition, count));
        return { name: label(`t${at}`), watch: { ...configMaps, ...inTick, matchConditions } };
      }),
      delivery: delivery(dice, { mode: "All", onFailure: "Drop" }),
      resources,
    },
  }),
  "long conditions": (dice) => ({
    handler: quiet,
    spec: {
      triggers: [
        {
          name: "long",
          watch: {
            ...configMaps,
            ...inTick,
            events: ["Added", "Modified", "Deleted"],
            initialEvents: dice.pick(["Deliver", "Skip"]),
            object: "Full",
            lastBody: dice.pick(["Full", "Metadata"]),
            matchConditions: conditions(most("spec.triggers[].watch.matchConditions"), longest),
          },
        },
      ],
      delivery: delivery(dice, { mode: "Latest", debounce: "60s", onFailure: "Block" }),
      resources,
    },
  }),
  "fields that changed, of all triggers": (dice) => ({
    handler: quiet,
    spec: {
      triggers: times(most("spec.triggers"), (at) => ({
        name: label(`t${at}`),
        watch: {
          ...configMaps,
          ...inTick,
          fieldSelector: `metadata.name!=${label(`n${at % 3}`)}`,
          changedFields: times(most("spec.triggers[].watch.changedFields"), (field) => `.data.f${field}x${at}`),
        },
      })),
      delivery: delivery(dice, { mode: dice.pick(["All", "Latest"]), onFailure: "DeadLetter" }),
      resources,
      trustGroup: label("fields"),
    },
  }),
  "namespaces by name": (dice) => ({
    handler: quiet,
    spec: {
      triggers: [
        {
          name: "names",
          watch: {
            ...configMaps,
            namespaceSelector: {
              matchNames: times(most("spec.triggers[].watch.namespaceSelector.matchNames"), (at) =>
                at === 0 ? "tick" : label(`n${at}`),
              ),
            },
            labelSelector: requirements(dice, "spec.triggers[].watch.labelSelector"),
          },
        },
      ],
      delivery: delivery(dice, { mode: "All" }),
      resources,
    },
  }),
  "namespaces by label": (dice) => ({
    handler: quiet,
    spec: {
      triggers: [
        {
          name: "labels",
          watch: {
            ...configMaps,
            namespaceSelector: requirements(dice, "spec.triggers[].watch.namespaceSelector"),
            labelSelector: values("spec.triggers[].watch.labelSelector"),
          },
        },
        {
          name: "values",
          watch: { ...configMaps, namespaceSelector: values("spec.triggers[].watch.namespaceSelector") },
        },
      ],
      delivery: delivery(dice, { mode: "All" }),
      resources,
      isolation: "Event",
    },
  }),
  "keys of all triggers": (dice) => ({
    handler: requeueing,
    spec: {
      triggers: [
        { name: "own", watch: { apiVersion: "v1", kind: "ServiceAccount", ...inTick } },
        {
          name: "owned",
          watch: { ...configMaps, ...inTick },
          key: { owner: { apiVersion: "v1", kind: "ServiceAccount" } },
        },
        { name: "each", watch: { ...configMaps, ...inTick }, key: { all: true } },
        ...times(most("spec.triggers") - 3, (at) => {
          const give = `lists.range(100).map(i, object.metadata.namespace + '/k${at % 4}' + object.metadata.resourceVersion + '-' + string(i))`;
          const expression = at === 0 ? `${give} // ${"x".repeat(most("spec.triggers[].key.expression"))}` : give;
          return {
            name: label(`t${at}`),
            watch: { ...configMaps, ...inTick },
            key: { expression: expression.slice(0, most("spec.triggers[].key.expression")) },
          };
        }),
      ],
      delivery: delivery(dice, { mode: "Reconcile", shardBy: "Key", resync: "1s", debounce: "1ms" }),
      resources,
    },
  }),
  schedules: (dice) => ({
    handler: quiet,
    spec: {
      triggers: times(most("spec.triggers"), (at) => ({
        name: label(`t${at}`),
        schedule:
          at === 0
            ? { cron: cronOf(most("spec.triggers[].schedule.cron")), timeZone: "America/Argentina/ComodRivadavia" }
            : { every: "1s", jitter: "999ms", missed: dice.pick(["Once", "Skip", "All"]) },
      })),
      delivery: delivery(dice, { mode: "All", onFailure: "Drop" }),
      resources,
    },
  }),
  reads: (dice) => ({
    handler: quiet,
    spec: {
      triggers: [{ name: "ticks", watch: { ...configMaps, ...inTick } }],
      reads: [...kinds, ...appKinds].slice(0, most("spec.reads")).map((kind, at) => ({
        ...kind,
        indexes: times(most("spec.reads[].indexes"), (index) => ({
          name: `by${index}${"x".repeat(60)}`,
          field: `.metadata.labels.f${index}`,
        })),
        ...(at === 0 && { namespaceSelector: requirements(dice, "spec.reads[].namespaceSelector") }),
        ...(at === 1 && { labelSelector: requirements(dice, "spec.reads[].labelSelector") }),
        ...(at === 2 && {
          object: "Metadata",
          namespaceSelector: {
            matchNames: times(most("spec.reads[].namespaceSelector.matchNames"), (name) => label(`n${name}`)),
          },
        }),
        ...(at === 3 && { fieldSelector: "metadata.name!=none", labelSelector: values("spec.reads[].labelSelector") }),
        ...(at === 4 && { namespaceSelector: values("spec.reads[].namespaceSelector") }),
      })),
      delivery: delivery(dice, { mode: "All" }),
      resources,
    },
  }),
  "permissions, hosts and environment": (dice) => ({
    handler: quiet,
    spec: {
      triggers: [{ name: "ticks", watch: { ...configMaps, ...inTick } }],
      permissions: times(most("spec.permissions"), (rule) => {
        // Each of the first rules has one list at its limit: the product of all would be more rights than a manifest may name.
        const count = (list: (typeof ruleLists)[number]) => {
          if (rule >= ruleLists.length) return dice.below(2) + 1;
          return ruleLists[rule] === list ? most(`spec.permissions[].${list}`) : 1;
        };
        return {
          apiGroups: times(count("apiGroups"), (at) => (at === 0 ? "" : `g${at}.example`)),
          resources: times(count("resources"), (at) => `things${at}`),
          verbs: times(count("verbs"), () => dice.pick(["get", "list", "create", "update", "patch", "delete"])),
          resourceNames: times(count("resourceNames"), (at) => label(`o${at}`)),
          namespaces: times(count("namespaces"), (at) => label(`n${at}`)),
        };
      }),
      egress: times(most("spec.egress"), (at) => ({
        host: `${label(`h${at}`)}.example`,
        network: dice.pick(["Public", "Private"]),
        ports: times(at === 0 ? most("spec.egress[].ports") : 2, (port) => most("spec.egress[].ports[]") - port),
      })),
      env: times(most("spec.env"), (at) => {
        const name = `V${at}_${"X".repeat(200)}`;
        const ref = { name: label(`none${at}`), key: "k".repeat(253), optional: true };
        if (at % 3 === 0) return { name, value: "v".repeat(4_000) };
        return { name, valueFrom: at % 3 === 1 ? { secretKeyRef: ref } : { configMapKeyRef: ref } };
      }),
      delivery: delivery(dice, { mode: "All" }),
      resources,
      paused: false,
      canary: { abortWhen: { failureRate: 1, minRuns: most("spec.canary.abortWhen.minRuns") } },
    },
  }),
  "failures of batches": (dice) => ({
    handler: throwing,
    spec: {
      triggers: [{ name: "ticks", watch: { ...configMaps, ...inTick } }],
      delivery: delivery(dice, {
        mode: "All",
        batch: { maxSize: most("spec.delivery.batch.maxSize"), maxWait: "1ms" },
        retry: { maxAttempts: 1 },
        onFailure: "DeadLetter",
      }),
      resources,
      isolation: dice.pick(["Handler", "Event"]),
    },
  }),
};

/** A cron expression of about so many characters: every minute, written out. */
function cronOf(length: number): string {
  const list = (from: number, to: number) => times(to - from + 1, (at) => String(from + at)).join(",");
  const written = `${list(0, 59)} ${list(0, 23)} ${list(1, 31)} ${list(1, 12)} ${list(0, 6)}`;
  return written.padEnd(length).slice(0, length);
}

/**
 * Ten manifests, each valid by the schema, that together use each field up to its limit. The same seed gives the same manifests.
 */
export const greedyOf = (seed: number): readonly Greedy[] =>
  Object.entries(leans).map(([leansOn, make], at) => ({
    leansOn,
    ...make(new Dice(seed * 100 + at)),
  }));

/** A manifest's document. */
export const documentOf = (name: string, spec: Spec) => ({
  apiVersion: "watchfire.dev/v1alpha1",
  kind: "Function",
  metadata: { name },
  spec: { handler: "./handler.ts", ...spec },
});

/** The functions' files, with function names of maximum length. */
export const filesOf = (greedy: readonly Greedy[]): Readonly<Record<string, Files>> =>
  Object.fromEntries(
    greedy.map(({ spec, handler }, at) => {
      const name = label(`greedy${at}`);
      return [name, { "function.yaml": JSON.stringify(documentOf(name, spec)), "handler.ts": handler }];
    }),
  );
