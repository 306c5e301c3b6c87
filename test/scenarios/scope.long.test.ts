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

test("a trigger on metadata is told of each change and deletion, also of those it was away for, and of no content", async () => {
  const team = await createTeam();
  const runtime = await install();
  const watch = team.watch({
    object: "Metadata",
    changedFields: [".metadata.labels"],
    matchConditions: [{ name: "named", expression: "object.metadata.name != 'z'" }],
  });
  await team.make("a", 1, { step: "one" });
  await team.make("b", 1, { step: "one" });
  await runtime.define("follower", {
    watch,
    work: "ctx.log.info('told', { line: Object.keys(event.object).join() });",
  });
  await runtime.start();
  await team.make("z");
  await team.set("a", 2);
  await team.label("a", { step: "two" });
  await runtime.hears("follower", "Modified a=undefined");
  await runtime.kill();
  await team.remove("b");
  await team.label("a", { step: "three" });
  await runtime.start();
  await runtime.hears("follower", "Deleted b=undefined");
  // An event that was running at the kill is delivered again, flagged.
  const told = () => runtime.told("follower").filter((line) => !line.includes("redelivered"));
  await runtime.sees("both changes of labels", () => told().filter((line) => line.startsWith("Modified")).length >= 2);
  expect(
    told()
      .filter((line) => line.includes("="))
      .sort(),
  ).toEqual([
    "Added a=undefined initial",
    "Added b=undefined initial",
    "Deleted b=undefined",
    "Modified a=undefined",
    "Modified a=undefined",
  ]);
  expect(new Set(told().filter((line) => !line.includes("=")))).toEqual(new Set(["apiVersion,kind,metadata"]));
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

test("with initialEvents: Skip, a namespace that comes when none matched before brings news, made or labelled later", async () => {
  const label = { scope: "skipped" };
  const runtime = await install();
  const watch = {
    apiVersion: "v1",
    kind: "ConfigMap",
    namespaceSelector: { matchLabels: label },
    initialEvents: "Skip",
  };
  await runtime.define("follower", { watch: { ...watch, fieldSelector: "metadata.name!=kube-root-ca.crt" } });
  await runtime.start();
  const made = await createTeam(label);
  await Promise.all([made.make("a"), made.make("b")]);
  await runtime.hears("follower", 2);
  const labelled = await createTeam();
  await labelled.make("c");
  await admin.patch(`/api/v1/namespaces/${labelled.name}`, { metadata: { labels: label } });
  await runtime.hears("follower", 3);
  expect(runtime.told("follower").map((line) => line.split(" ")[1])).toEqual(
    expect.arrayContaining(["a=1", "b=1", "c=1"]),
  );
});

test("with initialEvents: Skip, objects of a kind that is installed after the function are news", async () => {
  const runtime = await install();
  const group = "later.example.com";
  const watch = { apiVersion: `${group}/v1`, kind: "Gadget", initialEvents: "Skip" };
  await runtime.define("follower", { watch });
  await runtime.open();
  await runtime.sees("the kind is missing", async () =>
    (await runtime.sources("Gadget")).some(({ state }) => state === "missing"),
  );
  const team = await createTeam();
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `gadgets.${group}` },
    spec: {
      group,
      names: { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList" },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  const gadget = { apiVersion: `${group}/v1`, kind: "Gadget", metadata: { name: "first" }, data: { v: "1" } };
  await runtime.sees("the gadget is made", () =>
    admin.post(`/apis/${group}/v1/namespaces/${team.name}/gadgets`, gadget).then(
      () => true,
      () => false,
    ),
  );
  await runtime.hears("follower", 1);
  expect(runtime.told("follower")[0]).toMatch(/^Added first=1 .*\(relist\)/);
});
