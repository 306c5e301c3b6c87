import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: shops }
spec:
  handler: ./handler.ts
  triggers:
    - name: shops
      watch: { apiVersion: v1, kind: ConfigMap, labelSelector: { matchLabels: { shop: "yes" } } }
    - name: parts
      watch: { apiVersion: v1, kind: Secret, labelSelector: { matchLabels: { shop: part } } }
      key: { owner: { apiVersion: v1, kind: ConfigMap } }
    - name: named
      watch: { apiVersion: v1, kind: Secret, labelSelector: { matchLabels: { shop: named } } }
      key: { expression: "object.metadata.annotations['of']" }
  permissions: [{ apiGroups: [""], resources: [secrets], verbs: [list] }]
  delivery: { mode: Reconcile, retry: { initialDelay: 10ms } }
`;

const handler = `import { defineReconciler, requeueAfter } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

export default defineReconciler<V1ConfigMap>(async ({ key, object, causes, attempt, redelivered }, ctx) => {
  const why = causes.map(({ type, trigger = "", name = "" }) => [type, trigger, name].filter((each) => each !== "").join(" "));
  ctx.log.info("run", { key, wish: object?.data?.wish ?? null, gone: object === undefined, why, attempt, redelivered });
  if (object?.data?.wish === "fail" && attempt === 1) throw new Error("not yet");
  if (object?.data?.wish === "later" && !why.includes("Requeue")) return requeueAfter("3s");
});
`;

interface Said {
  readonly key: { readonly namespace?: string; readonly name: string };
  readonly wish: string | null;
  readonly gone: boolean;
  readonly why: readonly string[];
  readonly attempt: number;
  readonly redelivered: boolean;
}

/** The lines that the reconciler logged of the runs of one key. */
function said(logFile: string, name: string): Said[] {
  const lines = readFileSync(logFile, "utf8")
    .split("\n")
    .filter((line) => line.includes('"msg":"run"'));
  return lines.map((line) => JSON.parse(line).fields as Said).filter(({ key }) => key.name === name);
}

test("a reconciler is woken by its object and by what counts for it, fails and asks for later; kill -9 keeps the time that it asked for", async () => {
  const folder = folderOf({ "functions/shops/function.yaml": manifest, "functions/shops/handler.ts": handler });
  const cluster = await ClusterProcess.start(folder);
  onTestFinished(() => cluster.stop());
  const runtime = new RuntimeProcess(folder, cluster.kubeconfig, join(folder, "functions"));
  onTestFinished(() => runtime.kill());
  await runtime.start();
  const runsOf = (name: string, count: number) =>
    until(`${count} runs of ${name}`, 15_000, async () => {
      const runs = said(runtime.logFile, name);
      return runs.length >= count && runs;
    });
  const { client } = cluster;
  const configMaps = "/api/v1/namespaces/default/configmaps";
  const secrets = "/api/v1/namespaces/default/secrets";
  const shop = (name: string, wish: string) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, labels: { shop: "yes" } },
    data: { wish },
  });
  const part = (name: string, metadata: object) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, ...metadata },
  });

  const owner = await client.post(configMaps, shop("web", "nothing"));
  await runsOf("web", 1);
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "web", uid: owner.metadata.uid }];
  await client.post(secrets, part("owned", { labels: { shop: "part" }, ownerReferences }));
  await runsOf("web", 2);
  await client.post(secrets, part("named", { labels: { shop: "named" }, annotations: { of: "web" } }));
  const woken = await runsOf("web", 3);
  expect(woken.map(({ key, wish, why }) => [key, wish, ...why])).toEqual([
    [{ namespace: "default", name: "web" }, "nothing", "Added shops web"],
    [{ namespace: "default", name: "web" }, "nothing", "Added parts owned"],
    [{ namespace: "default", name: "web" }, "nothing", "Added named named"],
  ]);

  await client.post(configMaps, shop("fails", "fail"));
  expect((await runsOf("fails", 2)).map(({ attempt }) => attempt)).toEqual([1, 2]);

  await client.post(configMaps, shop("later", "later"));
  await runsOf("later", 1);
  const askedAt = Date.now();
  // The request to run later is on record with the next commit, which includes this later change.
  await client.post(configMaps, shop("next", "nothing"));
  await runsOf("next", 1);
  await client.post(configMaps, shop("after", "nothing"));
  await runsOf("after", 1);
  await runtime.kill();
  await runtime.start();
  const [, again] = await runsOf("later", 2);
  expect(again).toMatchObject({ why: ["Requeue"], attempt: 1, redelivered: false });
  expect(Date.now() - askedAt).toBeGreaterThan(2_500);

  await client.delete(`${configMaps}/later`);
  expect((await runsOf("later", 3))[2]).toMatchObject({ gone: true, wish: null, why: ["Deleted shops later"] });
}, 60_000);
