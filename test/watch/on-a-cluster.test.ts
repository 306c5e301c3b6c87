import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { type Cluster, startCluster } from "../../runtime/dev/cluster/cluster.ts";
import { clusterUid } from "../../runtime/kube/cluster-facts.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { NamespaceScope } from "../../runtime/watch/namespace-scope.ts";
import { silentObserver } from "../../runtime/watch/observer.ts";
import { Watches } from "../../runtime/watch/watches.ts";
import { RecordingSubscriber } from "./recording-subscriber.ts";

const folder = mkdtempSync(join(tmpdir(), "watchfire-kubeconfig-"));
const kubeconfigFile = join(folder, "kubeconfig");
let cluster: Cluster;
let transport: KubeTransport;
let watches: Watches;

beforeAll(async () => {
  cluster = await startCluster({ clock: systemClock, kubeconfigFile });
  transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  const discovery = new Discovery(transport, systemClock);
  watches = new Watches({ transport, discovery, clock: systemClock, random: () => 0, observer: silentObserver });
});
afterAll(async () => {
  await watches.close();
  await transport.close();
  await cluster.close();
  rmSync(folder, { recursive: true });
});

const configMaps = "/api/v1/namespaces/default/configmaps";
const create = (path: string, object: object) =>
  transport.json<{ metadata: { resourceVersion: string } }>({ method: "POST", path, body: JSON.stringify(object) });
const merge = (path: string, patch: object) =>
  transport.json<{ metadata: { resourceVersion: string } }>({
    method: "PATCH",
    path,
    body: JSON.stringify(patch),
    headers: { "content-type": "application/merge-patch+json" },
  });
const remove = (path: string) => transport.json({ method: "DELETE", path });
const configMap = (name: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { own: name } },
});

test("what exists is listed, and what changes follows", async () => {
  await create(configMaps, configMap("first"));
  const subscriber = new RecordingSubscriber();
  const spec = { apiVersion: "v1", kind: "ConfigMap", namespace: "default", labelSelector: "own in (first,second)" };
  const watch = watches.subscribe(spec, subscriber);
  while (!subscriber.log.some((line) => line.startsWith("end"))) await systemTurn();
  const changed = await merge(`${configMaps}/first`, { data: { a: "1" } });
  await subscriber.saw(`Modified first ${changed.metadata.resourceVersion}`);
  const made = await create(configMaps, configMap("second"));
  await subscriber.saw(`Added second ${made.metadata.resourceVersion}`);
  await remove(`${configMaps}/second`);
  while (!subscriber.log.some((line) => line.startsWith("Deleted second"))) await systemTurn();
  expect(subscriber.log[1]).toMatch(/^item first/);
  const body = JSON.parse(subscriber.changes[1]?.body.toString() ?? "");
  expect(body).toMatchObject({ kind: "ConfigMap", apiVersion: "v1", data: { a: "1" } });
  expect(body.metadata).not.toHaveProperty("managedFields");
  await watch.close();
});

test("a position whose history was compacted away leads to a relist", async () => {
  const old = await create(configMaps, configMap("third"));
  await merge(`${configMaps}/third`, { data: { a: "1" } });
  cluster.compact();
  const subscriber = new RecordingSubscriber(old.metadata.resourceVersion);
  const watch = watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", labelSelector: "own=third" }, subscriber);
  while (!subscriber.log.some((line) => line.startsWith("end"))) await systemTurn();
  expect(subscriber.log[0]).toBe(`list relist from ${old.metadata.resourceVersion}`);
  await watch.close();
});

test("a definition that is installed after the start is followed within 5 s", async () => {
  const subscriber = new RecordingSubscriber();
  const watch = watches.subscribe({ apiVersion: "later.example.com/v1", kind: "Later" }, subscriber);
  while (watches.status()[0]?.state !== "missing") await systemTurn();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const began = performance.now();
  await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "laters.later.example.com" },
    spec: {
      group: "later.example.com",
      scope: "Namespaced",
      names: { plural: "laters", singular: "later", kind: "Later", listKind: "LaterList" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  while (!subscriber.log.some((line) => line.startsWith("end"))) await systemTurn();
  expect(performance.now() - began).toBeLessThan(5000);
  await watch.close();
});

test("namespaces come into scope and go as their labels and they themselves do", async () => {
  const log: string[] = [];
  const scope = await new Promise<NamespaceScope>((resolve) => {
    const made: NamespaceScope = new NamespaceScope({
      watches,
      id: "scope",
      labelSelector: "team=blue",
      enter: (namespace) => log.push(`enter ${namespace}`),
      leave: (namespace, reason) => log.push(`leave ${namespace} ${reason}`),
      ready: () => resolve(made),
    });
  });
  const blue = (name: string) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { team: "blue" } },
  });
  await create("/api/v1/namespaces", blue("blue-a"));
  await create("/api/v1/namespaces", blue("blue-b"));
  while (log.length < 2) await systemTurn();
  await merge("/api/v1/namespaces/blue-a", { metadata: { labels: { team: "red" } } });
  while (log.length < 3) await systemTurn();
  await remove("/api/v1/namespaces/blue-b");
  while (log.length < 4) await systemTurn();
  expect(log).toEqual(["enter blue-a", "enter blue-b", "leave blue-a unselected", "leave blue-b deleted"]);
  expect(scope.namespaces).toEqual([]);
  await scope.close();
});

test("a kubeconfig leads to the same cluster as its parts do", async () => {
  const connection = await connectKubeconfig({ file: kubeconfigFile, environment: {} });
  const uid = await clusterUid(connection.transport);
  expect(uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(uid).toBe(await clusterUid(transport));
  expect(connection.defaultNamespace).toBe("default");
  await connection.transport.close();
});

/** One turn of the event loop, for what no event tells of. */
const systemTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
