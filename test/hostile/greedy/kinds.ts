import type { Files } from "./neighbours.ts";

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

/** Greedy functions, each within every limit of the schema; by what they are greedy for. */
export const kinds: Readonly<Record<string, Readonly<Record<string, Files>>>> = {
  "conditions of 20 triggers": { hog: conditions("hog", 20) },
  "conditions of 100 triggers": { hog: conditions("hog", 100) },
  "conditions of ten functions": Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`hog-${at}`, conditions(`hog-${at}`, 10)]),
  ),
};
