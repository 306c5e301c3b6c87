import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { readManifests } from "../../runtime/manifest/read.ts";
import { functionTypes, refreshFunctionTypes, staleFunctionTypes } from "../../runtime/types/function-types.ts";
import { folderOf } from "../tools/folder.ts";
import { compilerFaults, typedProject } from "../tools/typed-project.ts";

const root = join(import.meta.dirname, "../..");

const manifestsOf = (text: string, file = "functions/f/function.yaml") =>
  readManifests(text, file, undefined).map(({ manifest, faults }) => {
    if (!manifest) throw new Error(faults.map(({ message }) => message).join("\n"));
    return manifest;
  });

const head = (name: string) => `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: ${name} }
spec:
  handler: ./handler.ts
`;

const several = `${head("several")}
  triggers:
    - { name: settings, watch: { apiVersion: v1, kind: ConfigMap } }
    - { name: all-shops, watch: { apiVersion: shop.example/v1, kind: Shop, object: Metadata } }
    - { name: nightly, schedule: { every: 1h } }
  reads:
    - apiVersion: v1
      kind: Pod
      indexes: [{ name: byNode, field: .spec.nodeName }]
    - { apiVersion: v1, kind: Namespace, object: Metadata }
  env:
    - { name: LEVEL, value: high }
    - { name: TOKEN, valueFrom: { secretKeyRef: { name: s, key: t } } }
    - { name: HOOK, valueFrom: { configMapKeyRef: { name: s, key: t, optional: true } } }
`;

/** The compiler must refuse exactly the lines that end in \`// wrong\`. */
const severalHandler = `
import { defineHandler, defineReconciler } from "@watchfire/sdk";
import { runHandler } from "@watchfire/sdk/testing";
import type { Context, Event, Handler } from "./function.d.ts";

const handler = defineHandler(async (event, ctx) => {
  if (event.trigger === "setings") return; // wrong
  if (event.trigger === "settings") ctx.log.info(event.object.data?.a ?? "");
  if (event.trigger === "settings") event.object.spec; // wrong
  if (event.trigger === "all-shops") ctx.log.info(event.object.metadata.name);
  if (event.trigger === "all-shops") event.object.spec; // wrong
  if (event.trigger === "nightly") ctx.log.info(event.scheduledFor);
  const texts: string[] = [ctx.env.LEVEL, ctx.env.TOKEN, ctx.env.HOOK ?? ""];
  const hook: string = ctx.env.HOOK; // wrong
  ctx.env.LEVL; // wrong
  const { items } = ctx.cache.list({ apiVersion: "v1", kind: "Pod", index: { byNode: "n" } });
  const phase: string | undefined = items[0]?.status?.phase;
  ctx.cache.list({ apiVersion: "v1", kind: "Pod", index: { byNod: "n" } }); // wrong
  ctx.cache.list({ apiVersion: "v1", kind: "Namespace", index: { byNode: "n" } }); // wrong
  ctx.cache.get({ apiVersion: "v1", kind: "Namespace", name: "a" })?.metadata.labels;
  ctx.cache.get({ apiVersion: "v1", kind: "Namespace", name: "a" })?.spec; // wrong
  ctx.cache.get({ apiVersion: "v1", kind: "Secret", name: "a", namespace: "b" }); // wrong
  helper(event, ctx);
}) satisfies Handler;
export default handler;

function helper(event: Event, { log }: Context): void {
  log.info(event.trigger);
}
defineReconciler(async () => {}) satisfies Handler; // wrong
void runHandler(handler, { type: "Scheduled", trigger: "nightly" });
void runHandler(handler, { type: "Scheduled", trigger: "settings" }); // wrong
`;

const keyed = `${head("keyed")}
  triggers:
    - { name: pods, watch: { apiVersion: v1, kind: Pod } }
    - { name: nodes, watch: { apiVersion: v1, kind: Node }, key: { expression: '"a/b"' } }
  delivery: { mode: Reconcile }
`;

const keyedHandler = `
import { defineReconciler } from "@watchfire/sdk";
import { runReconciler } from "@watchfire/sdk/testing";
import type { Reconciler, Run } from "./function.d.ts";

const reconciler = defineReconciler(async ({ object }, ctx) => {
  const phase: string | undefined = object?.status?.phase;
  object?.status?.fase; // wrong
  ctx.env.ANY; // wrong
  ctx.cache.get({ apiVersion: "v1", kind: "Pod", name: "a", namespace: "b" }); // wrong
}) satisfies Reconciler;
export const keyOf = ({ key }: Run): string => key.name;
void runReconciler(reconciler, { key: { name: "a" } });
`;

const batched = `${head("batched")}
  triggers: [{ name: pods, watch: { apiVersion: v1, kind: Pod } }]
  delivery: { batch: { maxSize: 5, maxWait: 1s } }
`;

const batchedHandler = `
import { defineBatchHandler } from "@watchfire/sdk";
import { runBatch } from "@watchfire/sdk/testing";
import type { BatchHandler } from "./function.d.ts";

const handler = defineBatchHandler(async (events) => {
  for (const { object, trigger } of events) if (trigger === "pods") object.status?.fase; // wrong
  return { failed: [] };
}) satisfies BatchHandler;
const object = { apiVersion: "v1", kind: "Pod" } as const;
void runBatch(handler, [{ object }, { object, trigger: "pods" }]);
void runBatch(handler, [{ object, trigger: "pots" }]); // wrong
`;

it.each([
  ["several triggers, reads and env", several, severalHandler],
  ["a reconciler", keyed, keyedHandler],
  ["a batch handler", batched, batchedHandler],
])("the types of a manifest type the handler of %s without a type argument", (_, manifest, handler) => {
  const [types] = functionTypes(manifestsOf(manifest));
  expect(types?.file).toBe("functions/f/function.d.ts");
  const folder = typedProject({ "functions/f/function.d.ts": types?.text ?? "", "functions/f/handler.ts": handler });
  const faults = compilerFaults(folder);
  const lines = faults.flatMap((line) => /^functions\/f\/(?:handler|function\.d)\.ts\((\d+),/.exec(line)?.[1] ?? []);
  const wrong = handler.split("\n").flatMap((line, index) => (line.endsWith("// wrong") ? [String(index + 1)] : []));
  expect([...new Set(lines)], faults.join("\n")).toEqual(wrong);
});

it("types are stale where their file is there with another text", () => {
  const folder = folderOf({ "a/function.d.ts": "old", "b/function.d.ts": "" });
  const [a, b, c] = ["a", "b", "c"].flatMap((name) =>
    manifestsOf(head(name) + batched.split("./handler.ts\n")[1], join(folder, name, "function.yaml")),
  );
  if (!a || !b || !c) throw new Error("three manifests are read");
  writeFileSync(join(folder, "b/function.d.ts"), functionTypes([b])[0]?.text ?? "");
  expect(staleFunctionTypes([a, b, c]).map(({ name }) => name)).toEqual(["a"]);
  refreshFunctionTypes([a, b, c]);
  expect(staleFunctionTypes([a, b, c])).toEqual([]);
  expect(existsSync(join(folder, "c/function.d.ts"))).toBe(false);
});

it("functions that share a file have no types, since there is one function.d.ts in a folder", () => {
  expect(functionTypes(manifestsOf(`${batched}---\n${keyed}`))).toEqual([]);
  expect(functionTypes(manifestsOf(batched, "functions/all.yaml"))).toEqual([]);
});

it("each function.d.ts of this repository is what `watchfire types --functions FOLDER` writes", () => {
  const files = globSync("{functions,runtime/cli/new-project/templates}/**/function.d.ts", { cwd: root });
  expect(files.length).toBeGreaterThan(14);
  for (const file of files) {
    const manifest = join(root, dirname(file), "function.yaml");
    const [types] = functionTypes(manifestsOf(readFileSync(manifest, "utf8"), manifest));
    expect(readFileSync(join(root, file), "utf8"), file).toBe(types?.text);
  }
});
