import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { NamespaceInformer } from "../../runtime/informer/namespace-informer.ts";
import { clusterIdentity } from "../../runtime/kube/cluster-facts.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import type { Access } from "../target/client.ts";
import { createNamespace, describeHistory, removeAtEnd, startOwn, unique } from "../target/fixture.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";

/** The runtime's own client and sources on a cluster. */
function connect({ url, ca, token }: Access) {
  const transport = connectDirect({ server: url, ca, token });
  const discovery = new Discovery(transport, systemClock);
  const watches = new Informers({
    transport,
    discovery,
    clock: systemClock,
    random: () => 0,
    observer: silentObserver,
  });
  afterAll(async () => {
    await watches.close();
    await transport.close();
  });
  const send = (method: "POST" | "PATCH" | "DELETE", path: string, body?: object) =>
    transport.json<{ metadata: { resourceVersion: string } }>({
      method,
      path,
      ...(body && { body: JSON.stringify(body) }),
      headers: { "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" },
    });
  return { transport, watches, send };
}

const { access } = inject("shared");
const { transport, watches, send } = connect(access);

/** One turn of the event loop, for changes that no event reports. */
const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
const ended = async (subscriber: RecordingSubscriber) => {
  while (!subscriber.log.some((line) => line.startsWith("end"))) await turn();
};
const configMap = (name: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { own: name } },
});

test("a source lists what exists, and follows what changes", async () => {
  const namespace = await createNamespace();
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  await send("POST", path, configMap("first"));
  const subscriber = new RecordingSubscriber();
  const spec = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: "own in (first,second)" };
  const watch = watches.subscribe(spec, subscriber);
  await ended(subscriber);
  const changed = await send("PATCH", `${path}/first`, { data: { a: "1" } });
  await subscriber.saw(`Modified first ${changed.metadata.resourceVersion}`);
  const made = await send("POST", path, configMap("second"));
  await subscriber.saw(`Added second ${made.metadata.resourceVersion}`);
  await send("DELETE", `${path}/second`);
  while (!subscriber.log.some((line) => line.startsWith("Deleted second"))) await turn();
  expect(subscriber.log[1]).toMatch(/^item first/);
  const body = JSON.parse(subscriber.changes[1]?.body.toString() ?? "");
  expect(body).toMatchObject({ kind: "ConfigMap", apiVersion: "v1", data: { a: "1" } });
  expect(body.metadata).not.toHaveProperty("managedFields");
  await watch.close();
});

test("a source of metadata brings no more of any object, beside one that brings all", async () => {
  const namespace = await createNamespace();
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  await send("POST", path, { ...configMap("first"), data: { a: "1" } });
  const spec = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: "own" };
  const [all, some] = [new RecordingSubscriber(), new RecordingSubscriber()];
  const open = [watches.subscribe(spec, all), watches.subscribe({ ...spec, representation: "metadata" }, some)];
  await Promise.all([ended(all), ended(some)]);
  const changed = await send("PATCH", `${path}/first`, { data: { a: "2" } });
  await send("DELETE", `${path}/first`);
  for (const each of [all, some]) while (!each.log.some((line) => line.startsWith("Deleted first"))) await turn();
  expect(some.log).toEqual(all.log);
  expect(some.log).toContain(`Modified first ${changed.metadata.resourceVersion}`);
  const bodies = (of: RecordingSubscriber) => of.changes.map(({ body }) => JSON.parse(body.toString()));
  expect(bodies(all).map(({ data }) => data)).toEqual([{ a: "1" }, { a: "2" }, { a: "2" }]);
  expect(bodies(some)).toEqual(bodies(all).map(({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata })));
  await Promise.all(open.map((watch) => watch.close()));
});

test("a source that resumes gets what happened since, and no list", async () => {
  const namespace = await createNamespace();
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const before = await send("POST", path, configMap("first"));
  const after = await send("PATCH", `${path}/first`, { data: { a: "1" } });
  const subscriber = new RecordingSubscriber(before.metadata.resourceVersion);
  const watch = watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", namespace }, subscriber);
  await subscriber.saw(`Modified first ${after.metadata.resourceVersion}`);
  expect(subscriber.log.filter((line) => line.startsWith("list"))).toEqual([]);
  await watch.close();
});

test("a source finds out that its position lies in the cluster's future", async () => {
  const namespace = await createNamespace();
  await send("POST", `/api/v1/namespaces/${namespace}/configmaps`, configMap("first"));
  const subscriber = new RecordingSubscriber("9000000000");
  const watch = watches.subscribe({ apiVersion: "v1", kind: "ConfigMap", namespace }, subscriber);
  await ended(subscriber);
  expect(subscriber.log[0]).toBe("list rv-rewind from 9000000000");
  await watch.close();
});

describeHistory("a cluster whose history is gone", () => {
  test("of those who share a source only the one whose position was compacted away lists", async () => {
    const own = await startOwn();
    const cluster = connect(own.access);
    const objects = [
      { kind: "ConfigMap", path: "/api/v1/namespaces/default/configmaps", body: configMap("third") },
      // API servers have no watch cache of Events: etcd reports what is gone, without the start of its history.
      {
        kind: "Event",
        path: "/api/v1/namespaces/default/events",
        body: { ...configMap("third"), kind: "Event", involvedObject: { namespace: "default" } },
      },
    ];
    const made = [];
    for (const { kind, path, body } of objects) {
      const old = await cluster.send("POST", path, body);
      const set = (reason: string) => cluster.send("PATCH", `${path}/third`, { metadata: { annotations: { reason } } });
      // Twice: a change whose predecessor alone is compacted is answered with 500, until more is compacted.
      await set("gone");
      await set("gone as well");
      made.push({ kind, old: old.metadata.resourceVersion, set });
    }
    await own.compact();
    for (const { kind, old, set } of made) {
      const gone = new RecordingSubscriber(old);
      const inside = new RecordingSubscriber((await set("kept")).metadata.resourceVersion);
      for (const each of [gone, inside]) {
        cluster.watches.subscribe({ apiVersion: "v1", kind, labelSelector: "own=third" }, each);
      }
      await ended(gone);
      const news = `Modified third ${(await set("news")).metadata.resourceVersion}`;
      await Promise.all([gone.saw(news), inside.saw(news)]);
      expect(gone.log.filter((line) => line.startsWith("list"))).toEqual([`list relist from ${old}`]);
      expect(inside.log.filter((line) => !line.startsWith("bookmark"))).toEqual([news]);
    }
  });
});

test("a source starts within 5 s of its definition being established", async () => {
  const group = `${unique("later")}.example.com`;
  const subscriber = new RecordingSubscriber();
  const watch = watches.subscribe({ apiVersion: `${group}/v1`, kind: "Later" }, subscriber);
  while (!watches.status().some((source) => source.state === "missing")) await turn();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await send("POST", definitions, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `laters.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "laters", singular: "later", kind: "Later", listKind: "LaterList" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  removeAtEnd(`${definitions}/laters.${group}`);
  const path = `${definitions}/laters.${group}`;
  const isEstablished = async () => {
    const definition = await transport.json<Definition>({ method: "GET", path });
    return definition.status?.conditions?.some((each) => each.type === "Established" && each.status === "True");
  };
  while (!(await isEstablished())) await turn();
  const began = performance.now();
  await subscriber.saw("list initial from nowhere");
  expect(performance.now() - began).toBeLessThan(5000);
  await ended(subscriber);
  await watch.close();
});

interface Definition {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

test("namespaces come into scope and go as their labels and they themselves do", async () => {
  const log: string[] = [];
  const team = unique("team");
  const scope = await new Promise<NamespaceInformer>((resolve) => {
    const made: NamespaceInformer = new NamespaceInformer({
      watches,
      clock: systemClock,
      id: "scope",
      labelSelector: `team=${team}`,
      believes: () => true,
      enter: (namespace) => log.push(`enter ${namespace}`),
      leave: (namespace, reason) => log.push(`leave ${namespace} ${reason}`),
      ready: () => resolve(made),
    });
  });
  const first = await createNamespace({ team });
  const second = await createNamespace({ team });
  while (log.length < 2) await turn();
  await send("PATCH", `/api/v1/namespaces/${first}`, { metadata: { labels: { team: "other" } } });
  while (log.length < 3) await turn();
  expect(log).toEqual([`enter ${first}`, `enter ${second}`, `leave ${first} unselected`]);
  expect(scope.namespaces).toEqual([second]);
  await scope.close();
});

test("a kubeconfig leads to the same cluster as its parts do", async () => {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-kubeconfig-"));
  const file = join(folder, "kubeconfig");
  writeFileSync(file, kubeconfigOf(access), { mode: 0o600 });
  const connection = await connectKubeconfig({ file, environment: {} });
  const { uid } = await clusterIdentity(connection.transport);
  expect(uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(await clusterIdentity(transport)).toEqual({ uid });
  await connection.transport.close();
  await rm(folder, { recursive: true });
});
