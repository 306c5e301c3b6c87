import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { until } from "../tools/until.ts";
import { configMapPath, FunctionsFixture } from "./fixture.ts";

let fixture: FunctionsFixture;
beforeAll(async () => {
  fixture = await FunctionsFixture.start();
  await fixture.namespace("platform");
});
afterAll(() => fixture?.close());

const labels = { "sync.watchfire.dev/enabled": "true" };
const source = (name: string, selector: string | undefined, data = { region: "north" }) =>
  fixture.configMap("platform", name, data, {
    labels,
    annotations: selector === undefined ? {} : { "sync.watchfire.dev/namespaces": selector },
  });
const copy = (namespace: string, name: string) => fixture.object(configMapPath(namespace, name));

test("a source is copied into the namespaces that it selects and into no other, and the copies point back", async () => {
  await fixture.namespace("copy-a", { for: "copy" });
  await fixture.namespace("copy-b", { for: "copy" });
  await fixture.namespace("copy-c", { for: "nothing" });
  const { metadata } = await source("settings", "for=copy");
  for (const namespace of ["copy-a", "copy-b"]) {
    const found = await copy(namespace, "settings");
    expect(found.data).toEqual({ region: "north" });
    expect(found.metadata.labels?.["sync.watchfire.dev/source-uid"]).toBe(metadata.uid);
    expect(found.metadata.annotations?.["sync.watchfire.dev/source"]).toBe("platform/settings");
  }
  expect((await fixture.client.reply("GET", configMapPath("copy-c", "settings"))).status).toBe(404);
});

test("copies follow their source", async () => {
  await fixture.namespace("follow-a", { for: "follow" });
  await source("follower", "for=follow");
  await copy("follow-a", "follower");
  await fixture.client.patch(configMapPath("platform", "follower"), { data: { region: "south" } });
  await fixture.object(configMapPath("follow-a", "follower"), ({ data }) => data.region === "south");
});

test("a copy that someone edits or deletes is put right", async () => {
  await fixture.namespace("tended", { for: "tended" });
  await source("tended", "for=tended");
  const { metadata } = await copy("tended", "tended");
  await fixture.client.patch(configMapPath("tended", "tended"), { data: { region: "mine", more: "yes" } });
  const right = ({ data }: Body) => data.region === "north" && Object.keys(data).length === 1;
  await fixture.object(configMapPath("tended", "tended"), right);
  await fixture.client.delete(configMapPath("tended", "tended"));
  const again = await fixture.object(configMapPath("tended", "tended"), right);
  expect(again.metadata.uid).not.toBe(metadata.uid);
});

test.each([
  ["is deleted", (path: string) => fixture.client.delete(path)],
  [
    "loses the label",
    (path: string) => fixture.client.patch(path, { metadata: { labels: { [Object.keys(labels)[0] ?? ""]: null } } }),
  ],
  [
    "selects others",
    (path: string) =>
      fixture.client.patch(path, { metadata: { annotations: { "sync.watchfire.dev/namespaces": "for=nobody" } } }),
  ],
])("copies are removed when their source %s", async (how, change) => {
  const id = how.replaceAll(" ", "-");
  await fixture.namespace(id, { for: id });
  await source(id, `for=${id}`);
  await copy(id, id);
  await change(configMapPath("platform", id));
  await fixture.gone(configMapPath(id, id));
});

test("a namespace that comes to match gets its copies, and loses them when it no longer does", async () => {
  await source("roaming", "for=roaming");
  await fixture.namespace("roaming", { for: "roaming" });
  await copy("roaming", "roaming");
  await fixture.client.patch("/api/v1/namespaces/roaming", { metadata: { labels: { for: "nothing" } } });
  await fixture.gone(configMapPath("roaming", "roaming"));
});

test("a ConfigMap that is no copy is never overwritten, and an Event on the source says so", async () => {
  await fixture.namespace("occupied", { for: "occupied" });
  await fixture.namespace("vacant", { for: "occupied" });
  await fixture.configMap("occupied", "precious", { mine: "yes" });
  await source("precious", "for=occupied");
  expect((await fixture.event("platform", "precious", "NotOwned")).message).toContain("namespace occupied");
  await copy("vacant", "precious");
  expect((await copy("occupied", "precious")).data).toEqual({ mine: "yes" });
  await fixture.client.delete(configMapPath("platform", "precious"));
  await fixture.gone(configMapPath("vacant", "precious"));
  expect((await copy("occupied", "precious")).data).toEqual({ mine: "yes" });
});

test("a selector that cannot be read is told, and the copies stay", async () => {
  await fixture.namespace("steady", { for: "steady" });
  await source("steady", "for=steady");
  await copy("steady", "steady");
  const annotations = { "sync.watchfire.dev/namespaces": "for in (" };
  await fixture.client.patch(configMapPath("platform", "steady"), { metadata: { annotations } });
  await fixture.event("platform", "steady", "BadSelector");
  await copy("steady", "steady");
});

test("a source that selects nothing is told", async () => {
  await source("aimless", undefined);
  await fixture.event("platform", "aimless", "NoNamespaces");
});

test("of many events none fails", async () => {
  const retried =
    /^watchfire_events_total\{[^}]*function="configmap-sync"[^}]*outcome="(?:dead_letter|dropped)"[^}]*\} [1-9]/m;
  await until("the metrics", 5000, async () => (await fixture.runtime.read("/metrics")).ok);
  expect(await (await fixture.runtime.read("/metrics")).text()).not.toMatch(retried);
});
