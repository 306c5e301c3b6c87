import { filesOf, greedyOf } from "./generate.ts";
import type { Files, Neighbours } from "./neighbours.ts";

const manifest = (name: string, spec: object): string =>
  JSON.stringify({
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name },
    spec: { handler: "./handler.ts", ...spec },
  });
const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["tick"] } };
const quiet = "export default async () => {};\n";

/** Conditions whose cost is near the limit, in so many triggers. */
function conditions(name: string, triggers: number): Files {
  const expression = (n: number) =>
    `object.data.at != 'x' && lists.range(150).all(a, lists.range(150).all(b, a + b < ${10_000_000 + n}))`;
  const trigger = (at: number) => ({
    name: `t${at}`,
    watch: {
      ...watch,
      matchConditions: [0, 1, 2, 3].map((n) => ({ name: `c${n}`, expression: expression(at * 10 + n) })),
    },
  });
  return {
    "function.yaml": manifest(name, { triggers: Array.from({ length: triggers }, (_, at) => trigger(at)) }),
    "handler.ts": quiet,
  };
}

/** For each change a hundred keys without an object, each of which asks to run again tomorrow. */
const inventedKeys: Files = {
  "function.yaml": manifest("hog", {
    triggers: [
      { name: "own", watch: { apiVersion: "v1", kind: "ServiceAccount", namespaceSelector: { matchNames: ["tick"] } } },
      {
        name: "ticks",
        watch,
        key: {
          expression:
            "lists.range(100).map(i, object.metadata.namespace + '/k' + object.metadata.resourceVersion + '-' + string(i))",
        },
      },
    ],
    delivery: { mode: "Reconcile", concurrency: 1000 },
  }),
  "handler.ts":
    'import { defineReconciler, requeueAfter } from "@watchfire/sdk";\nexport default defineReconciler(async () => requeueAfter("24h"));\n',
};

/** Throws at each event, from a bundle with so many lines. */
const throws = (name: string, lines: number): Files => ({
  "function.yaml": manifest(name, {
    triggers: [{ name: "ticks", watch }],
    delivery: { retry: { maxAttempts: 1 }, onFailure: "Drop" },
  }),
  "handler.ts": `let sum = 0;\n${"sum += Math.random();\n".repeat(lines)}export default async () => {\n  throw new Error("sum " + sum);\n};\n`,
});

/** As many log lines and calls as an event may make. */
const floods: Files = {
  "function.yaml": manifest("hog", {
    triggers: [{ name: "ticks", watch }],
    permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"], namespaces: ["tick"] }],
    delivery: { concurrency: 16, retry: { maxAttempts: 1 }, onFailure: "Drop" },
  }),
  "handler.ts": `export default async (event, ctx) => {
  for (let turn = 0; turn < 20; turn++) {
    for (let line = 0; line < 50; line++) ctx.log.info("flood", { text: "x".repeat(1000) });
    const ref = { apiVersion: "v1", kind: "ConfigMap", name: "t0", namespace: "tick" };
    await Promise.all(Array.from({ length: 16 }, () => ctx.kube.get(ref)));
  }
};
`,
};

/** Makes calls that are refused, again and again, beyond the limit of an attempt. */
const inVain: Files = {
  "function.yaml": manifest("hog", {
    triggers: [{ name: "ticks", watch }],
    delivery: { concurrency: 16, retry: { maxAttempts: 1 }, onFailure: "Drop" },
    resources: { cpuPerEvent: "10s" },
  }),
  "handler.ts": `const ref = { apiVersion: "v1", kind: "Secret", name: "no", namespace: "tick" };
export default async (event, ctx) => {
  while (!ctx.signal.aborted) await Promise.all(Array.from({ length: 60 }, () => ctx.kube.get(ref).catch(() => {})));
};
`,
};

/** Replaces all entries of `ctx.state` at each event, by a handler that may run 64 times at once. */
const ownState: Files = {
  "function.yaml": manifest("hog", {
    triggers: Array.from({ length: 10 }, (_, at) => ({ name: `t${at}`, watch })),
    delivery: { concurrency: 64, retry: { maxAttempts: 1 }, onFailure: "Drop" },
    resources: { state: "1Mi" },
  }),
  "handler.ts":
    'export default async (event, ctx) => {\n  await ctx.state.set("all", event.resourceVersion + "x".repeat(1_000_000));\n};\n',
};

/** Receives each change by so many triggers. */
const triggers = (count: number, watched: object = watch): Files => ({
  "function.yaml": manifest("hog", {
    triggers: Array.from({ length: count }, (_, at) => ({ name: `t${at}`, watch: watched })),
    delivery: { concurrency: 64 },
  }),
  "handler.ts": quiet,
});

const large = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["large"] } };
/** A little less than the API server's limit on a ConfigMap. */
const mostBytes = 1_000_000;

const times = (count: number, of: (name: string) => Files): Readonly<Record<string, Files>> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`hog-${at}`, of(`hog-${at}`)]));

/** The kind whose manifests are generated from the schema. */
export const generated = "every field of ten manifests";
/** Seed of the generated manifests: `SEED`, or a random one. */
export const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1_000_000));

const alone: Readonly<Record<string, Neighbours["functions"]>> = {
  "conditions of 20 triggers": { hog: conditions("hog", 20) },
  "conditions of 100 triggers": { hog: conditions("hog", 100) },
  "conditions of ten functions": times(10, (name) => conditions(name, 10)),
  "keys that no object has": { hog: inventedKeys },
  "errors of five functions with long source maps": times(5, (name) => throws(name, 20_000)),
  "log lines and calls": { hog: floods },
  "calls that are refused": { hog: inVain },
  "one hundred triggers": { hog: triggers(100) },
  "own state of 1 MiB, replaced at each event": { hog: ownState },
  [generated]: filesOf(greedyOf(seed)),
};

/** Greedy functions within every limit of the schema, by the resource that they use up. */
export const kinds: Readonly<Record<string, Neighbours>> = {
  ...Object.fromEntries(Object.entries(alone).map(([name, functions]) => [name, { functions }])),
  "objects of 1 MB for one hundred triggers": {
    functions: { hog: triggers(100, large) },
    load: { objects: 1, bytes: mostBytes, fate: "change" },
  },
  "last bodies of 1 MB for one hundred triggers": {
    functions: { hog: triggers(100, { ...large, events: ["Deleted"] }) },
    load: { objects: 1, bytes: mostBytes, fate: "change" },
  },
  "2,000 objects of one hundred triggers that go at once": {
    functions: { hog: triggers(100, large) },
    load: { objects: 2_000, bytes: 500, fate: "delete" },
  },
};
