import type { KubeObject, Stored } from "@watchfire/sdk";
import { ForbiddenError } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { type Run, type RunOptions, runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../../functions/configmap-sync/handler.ts";

const uidLabel = "sync.watchfire.dev/source-uid";
const reads = [
  { apiVersion: "v1", kind: "ConfigMap", labelSelector: { matchLabels: { "sync.watchfire.dev/enabled": "true" } } },
  { apiVersion: "v1", kind: "Namespace", object: "Metadata", indexes: [{ name: "place", field: ".metadata.name" }] },
] as const;

const namespace = (name: string, team: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels: { team } },
});
const configMap = (metadata: object, data: Record<string, string>) =>
  ({ apiVersion: "v1", kind: "ConfigMap", metadata, data }) as Stored<V1ConfigMap>;
const source = (name: string, selector: string, data = { region: "north" }) =>
  configMap(
    {
      name,
      namespace: "platform",
      uid: `uid-${name}`,
      labels: { "sync.watchfire.dev/enabled": "true" },
      annotations: { "sync.watchfire.dev/namespaces": selector },
    },
    data,
  );
const copy = (of: string, place: string, data = { region: "north" }) =>
  configMap({ name: of, namespace: place, labels: { [uidLabel]: `uid-${of}` } }, data);
const teams = [namespace("a", "one"), namespace("b", "one"), namespace("c", "two"), namespace("platform", "one")];

/** Each write, with its position. */
const writes = ({ calls }: Run) =>
  calls.flatMap(({ method, arguments: [what] }) => {
    const { metadata, ...ref } = what as { metadata?: object };
    const { namespace, name } = (metadata ?? ref) as { namespace?: string; name?: string };
    return ["create", "update", "delete"].includes(method) ? [`${method} ${namespace}/${name}`] : [];
  });
const run = (event: Parameters<typeof runHandler<never>>[1] | object, options: RunOptions) =>
  runHandler(handler, event as never, { reads, ...options });

test("a source that changed writes what differs, and nothing else", async () => {
  const objects = [...teams, copy("s", "a"), copy("s", "b", { region: "old" }), copy("s", "c")];
  const ran = await run({ trigger: "sources", object: source("s", "team=one") }, { objects });
  expect(ran.outcome).toBe("ok");
  expect(writes(ran).sort()).toEqual(["delete c/s", "update b/s"]);
});

test("namespaces are looked for in memory: the API server is asked for the copies alone, once", async () => {
  const ran = await run({ trigger: "sources", object: source("s", "team=one") }, { objects: teams });
  expect(ran.calls.map(({ method }) => method)).toEqual(["list", "create", "create"]);
});

test("a namespace settles what each source has in it, and in no other", async () => {
  const objects = [...teams, source("s", "team=one"), source("t", "team=two"), source("u", "team=one"), copy("t", "a")];
  const ran = await run({ trigger: "namespaces", object: namespace("a", "one") }, { objects });
  expect(writes(ran).sort()).toEqual(["create a/s", "create a/u", "delete a/t"]);
});

test.each([
  ["was edited is put right", "Modified", [copy("s", "a", { region: "mine" })], ["update a/s"]],
  ["was deleted is put right", "Deleted", [], ["create a/s"]],
  ["is as its source is left alone", "Modified", [copy("s", "a")], []],
])("a copy that %s, and no other of its namespace is looked at", async (_, type, there, expected) => {
  const objects = [...teams, source("s", "team=one"), source("t", "team=one"), ...there];
  const ran = await run({ trigger: "copies", type, object: there[0] ?? copy("s", "a") }, { objects });
  expect(writes(ran)).toEqual(expected);
  expect(ran.calls.some(({ method }) => method === "list")).toBe(expected.length > 0);
});

test("a ConfigMap of the same name that is no copy is neither written nor removed, even when its source goes", async () => {
  const objects = [...teams, configMap({ name: "s", namespace: "a" }, { mine: "yes" }), copy("other", "a")];
  const ran = await run({ trigger: "sources", object: source("s", "team=one") }, { objects });
  expect(ran).toMatchObject({ outcome: "ok", events: [{ reason: "NotOwned" }] });
  const gone = await run({ trigger: "sources", type: "Deleted", object: source("s", "team=one") }, { objects });
  expect(writes(gone)).toEqual([]);
});

test("a copy that was changed since it was read is not overwritten by what was read", async () => {
  const there = copy("s", "a", { region: "old" });
  const ran = await run({ trigger: "sources", object: source("s", "team=one") }, { objects: [...teams, there] });
  const update = ran.calls.find(({ method }) => method === "update")?.arguments[0] as Stored;
  expect(update.metadata.resourceVersion).toMatch(/^\d+$/);
});

test("a namespace that refuses its copy keeps no other from its own, and is tried again", async () => {
  const refused = async ({ metadata }: KubeObject) => {
    if (metadata?.namespace === "a") throw new ForbiddenError("being terminated");
    return { metadata } as never;
  };
  const ran = await run(
    { trigger: "sources", object: source("s", "team=one") },
    { objects: teams, kube: { create: refused } },
  );
  expect(ran).toMatchObject({ outcome: "failed", error: { message: "being terminated" } });
  expect(writes(ran).sort()).toEqual(["create a/s", "create b/s"]);
});

test("a source that selects nothing is told, and its copies go", async () => {
  const objects = [...teams, copy("s", "a")];
  const ran = await run({ trigger: "sources", object: source("s", " ") }, { objects });
  expect(ran).toMatchObject({ outcome: "ok", events: [{ type: "Warning", reason: "NoNamespaces" }] });
  expect(writes(ran)).toEqual(["delete a/s"]);
});
