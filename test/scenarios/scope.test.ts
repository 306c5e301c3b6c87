import { expect, test } from "vitest";
import { admin, createTeam, install } from "./cluster.ts";

test("an object that loses the label is told as Deleted, one that gains it as Added, each time under an id of its own", async () => {
  const team = await createTeam();
  const runtime = await install();
  await team.make("a", 1, { sync: "true" });
  await team.make("b");
  await runtime.define("follower", { watch: team.watch({ labelSelector: { matchLabels: { sync: "true" } } }) });
  await runtime.start();
  await team.label("a", { sync: null });
  await team.label("a", { sync: "true" });
  await team.label("a", { sync: null });
  await team.label("b", { sync: "true" });
  await runtime.hears("follower", 5);
  expect(runtime.told("follower").filter((line) => line.includes("a=1"))).toEqual([
    "Added a=1 initial",
    "Deleted a=1",
    "Added a=1",
    "Deleted a=1",
  ]);
  const ids = runtime.lines.flatMap(({ fields }) => fields?.id ?? []);
  expect(new Set(ids).size).toBe(5);
});

test("a namespace that gains the label is watched from then on, one that loses it takes its objects with it", async () => {
  const label = { scope: "namespace-labels" };
  const inside = await createTeam(label);
  const outside = await createTeam();
  const runtime = await install();
  const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchLabels: label } };
  await inside.make("a");
  await outside.make("b");
  await runtime.define("follower", { watch: { ...watch, fieldSelector: "metadata.name!=kube-root-ca.crt" } });
  await runtime.start();
  await runtime.hears("follower", "Added a=1 initial");
  await admin.patch(`/api/v1/namespaces/${outside.name}`, { metadata: { labels: label } });
  await runtime.hears("follower", 2);
  expect(runtime.told("follower")[1]).toMatch(/^Added b=1/);
  await admin.patch(`/api/v1/namespaces/${inside.name}`, { metadata: { labels: { scope: null } } });
  await runtime.hears("follower", 3);
  expect(runtime.told("follower")[2]).toMatch(/^Deleted a=1 .*unselected/);
  await inside.set("a", 2);
  await outside.set("b", 2);
  await runtime.hears("follower", "Modified b=2");
  expect(runtime.told("follower")).toHaveLength(4);
});

test("a namespace made later that matches is watched within a moment, and one that is deleted tells of its objects", async () => {
  const label = { scope: "later" };
  const runtime = await install();
  const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchLabels: label } };
  await runtime.define("follower", { watch: { ...watch, fieldSelector: "metadata.name!=kube-root-ca.crt" } });
  await runtime.start();
  const team = await createTeam(label);
  await team.make("a");
  await runtime.hears("follower", 1);
  await admin.delete(`/api/v1/namespaces/${team.name}`);
  await runtime.hears("follower", 2);
  expect(runtime.told("follower").map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual([
    "Added a=1",
    "Deleted a=1",
  ]);
});

test("an empty namespace selector selects all namespaces, as one that is left out does", async () => {
  const team = await createTeam();
  const runtime = await install();
  const watch = { apiVersion: "v1", kind: "ConfigMap", labelSelector: { matchLabels: { only: team.name } } };
  await runtime.define("empty", { watch: { ...watch, namespaceSelector: {} } });
  await runtime.define("absent", { watch });
  await runtime.start();
  await team.make("a", 1, { only: team.name });
  for (const name of ["empty", "absent"]) await runtime.hears(name, "Added a=1");
});

test("a Modified that changed none of the named fields runs no handler, and is counted as filtered", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch({ changedFields: [".data"] }) });
  await runtime.start();
  await team.make("a");
  await team.label("a", { touched: "true" });
  await team.set("a", 2);
  await runtime.hears("follower", "Modified a=2");
  expect(runtime.told("follower")).toEqual(["Added a=1", "Modified a=2"]);
  await runtime.sees("a filtered event", async () => {
    return (await runtime.metric("watchfire_events_total", { type: "Modified", outcome: "filtered" })) === 1;
  });
});

test("an object deleted and made anew under its name is told as both, in that order", async () => {
  const team = await createTeam();
  const runtime = await install();
  await team.make("a");
  await runtime.define("follower", { watch: team.watch() });
  await runtime.start();
  await team.remove("a");
  await team.make("a", 2);
  await runtime.hears("follower", 3);
  expect(runtime.told("follower")).toEqual(["Added a=1 initial", "Deleted a=1", "Added a=2"]);
});
