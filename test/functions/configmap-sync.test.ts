import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../tools/until.ts";
import { configMapPath, Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.start();
  await stage.namespace("platform");
});
afterAll(() => stage?.close());

const labels = { "sync.watchfire.dev/enabled": "true" };
const source = (name: string, selector: string | undefined, data = { region: "north" }) =>
  stage.configMap("platform", name, data, {
    labels,
    annotations: selector === undefined ? {} : { "sync.watchfire.dev/namespaces": selector },
  });
const copy = (namespace: string, name: string) => stage.object(configMapPath(namespace, name));

test("a source is copied into the namespaces that it selects and into no other, and the copies point back", async () => {
  await stage.namespace("copy-a", { for: "copy" });
  await stage.namespace("copy-b", { for: "copy" });
  await stage.namespace("copy-c", { for: "nothing" });
  const { metadata } = await source("settings", "for=copy");
  for (const namespace of ["copy-a", "copy-b"]) {
    const found = await copy(namespace, "settings");
    expect(found.data).toEqual({ region: "north" });
    expect(found.metadata.labels?.["sync.watchfire.dev/source-uid"]).toBe(metadata.uid);
    expect(found.metadata.annotations?.["sync.watchfire.dev/source"]).toBe("platform/settings");
  }
  expect((await stage.client.reply("GET", configMapPath("copy-c", "settings"))).status).toBe(404);
});

test("copies follow their source", async () => {
  await stage.namespace("follow-a", { for: "follow" });
  await source("follower", "for=follow");
  await copy("follow-a", "follower");
  await stage.client.patch(configMapPath("platform", "follower"), { data: { region: "south" } });
  await stage.object(configMapPath("follow-a", "follower"), ({ data }) => data.region === "south");
});

test.each([
  ["is deleted", (path: string) => stage.client.delete(path)],
  [
    "loses the label",
    (path: string) => stage.client.patch(path, { metadata: { labels: { [Object.keys(labels)[0] ?? ""]: null } } }),
  ],
  [
    "selects others",
    (path: string) =>
      stage.client.patch(path, { metadata: { annotations: { "sync.watchfire.dev/namespaces": "for=nobody" } } }),
  ],
])("copies are removed when their source %s", async (how, change) => {
  const id = how.replaceAll(" ", "-");
  await stage.namespace(id, { for: id });
  await source(id, `for=${id}`);
  await copy(id, id);
  await change(configMapPath("platform", id));
  await stage.gone(configMapPath(id, id));
});

test("a namespace that comes to match gets its copies, and loses them when it no longer does", async () => {
  await source("roaming", "for=roaming");
  await stage.namespace("roaming", { for: "roaming" });
  await copy("roaming", "roaming");
  await stage.client.patch("/api/v1/namespaces/roaming", { metadata: { labels: { for: "nothing" } } });
  await stage.gone(configMapPath("roaming", "roaming"));
});

test("a ConfigMap that is no copy is never overwritten, and an Event on the source says so", async () => {
  await stage.namespace("occupied", { for: "occupied" });
  await stage.namespace("vacant", { for: "occupied" });
  await stage.configMap("occupied", "precious", { mine: "yes" });
  await source("precious", "for=occupied");
  expect((await stage.event("platform", "precious", "NotOwned")).message).toContain("namespace occupied");
  await copy("vacant", "precious");
  expect((await copy("occupied", "precious")).data).toEqual({ mine: "yes" });
  await stage.client.delete(configMapPath("platform", "precious"));
  await stage.gone(configMapPath("vacant", "precious"));
  expect((await copy("occupied", "precious")).data).toEqual({ mine: "yes" });
});

test("a selector that cannot be read is told, and the copies stay", async () => {
  await stage.namespace("steady", { for: "steady" });
  await source("steady", "for=steady");
  await copy("steady", "steady");
  const annotations = { "sync.watchfire.dev/namespaces": "for in (" };
  await stage.client.patch(configMapPath("platform", "steady"), { metadata: { annotations } });
  await stage.event("platform", "steady", "BadSelector");
  await copy("steady", "steady");
});

test("a source that selects nothing is told", async () => {
  await source("aimless", undefined);
  await stage.event("platform", "aimless", "NoNamespaces");
});

test("of many events none fails", async () => {
  const retried =
    /^watchfire_events_total\{[^}]*function="configmap-sync"[^}]*outcome="(?:dead_letter|dropped)"[^}]*\} [1-9]/m;
  await until("the metrics", 5000, async () => (await stage.runtime.read("/metrics")).ok);
  expect(await (await stage.runtime.read("/metrics")).text()).not.toMatch(retried);
});
