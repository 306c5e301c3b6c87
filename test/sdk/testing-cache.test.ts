import { expect, it } from "vitest";
import { ForbiddenError } from "../../sdk/errors.ts";
import { defineHandler } from "../../sdk/index.ts";
import { runHandler } from "../../sdk/testing.ts";

const configMap = (namespace: string, name: string, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace, labels },
  data: { v: name },
});
const kind = { apiVersion: "v1", kind: "ConfigMap" } as const;
const object = configMap("a", "one", { tier: "x" });
const objects = [object, configMap("a", "two"), configMap("b", "three", { tier: "x" })];
const namesIn = (query: object) =>
  defineHandler((_, ctx) => {
    ctx.log.info(
      ctx.cache
        .list({ ...kind, ...query })
        .items.map(({ metadata }) => metadata.name)
        .join(),
    );
  });

it("ctx.cache shows the objects that the manifest's reads choose, also those that the handler has just made", async () => {
  const handler = defineHandler(async (_, ctx) => {
    await ctx.kube.create(configMap("a", "made", { tier: "x" }));
    const { items, resourceVersion } = ctx.cache.list(kind);
    const one = ctx.cache.get({ ...kind, namespace: "a", name: "one" });
    const out = ctx.cache.get({ ...kind, namespace: "a", name: "two" });
    ctx.log.info(items.map(({ metadata }) => metadata.name).join(), {
      one: one?.data?.v,
      out,
      at: resourceVersion === ctx.cache.age(kind).resourceVersion,
    });
  });
  const reads = [{ ...kind, labelSelector: { matchLabels: { tier: "x" } } }];
  const run = await runHandler(handler, { object }, { objects, reads });
  expect(run).toMatchObject({
    outcome: "ok",
    logs: [{ message: "one,three,made", fields: { one: "one", out: undefined, at: true } }],
  });
});

it("reads with different label keys may be items of one array, each with its own labels", async () => {
  const reads = [
    { apiVersion: "v1", kind: "Secret", labelSelector: { matchLabels: { key: "x" } } },
    { ...kind, labelSelector: { matchLabels: { tier: "x", key: undefined } } },
    { apiVersion: "v1", kind: "Node", namespaceSelector: { matchLabels: { zone: "x" } } },
  ];
  const labelled = [...objects, configMap("b", "four", { tier: "x", key: "y", zone: "y" })];
  const run = await runHandler(namesIn({}), { object }, { objects: labelled, reads });
  expect(run).toMatchObject({ outcome: "ok", logs: [{ message: "one,three,four" }] });
});

it.each<[string, object, string]>([
  ["a namespace", { namespace: "a" }, "one,two"],
  ["labels", { labelSelector: "!tier" }, "two"],
  ["an index", { index: { byValue: "three" } }, "three"],
])("it finds objects by %s", async (_, query, names) => {
  const reads = [{ ...kind, indexes: [{ name: "byValue", field: ".data.v" }] }];
  const run = await runHandler(namesIn(query), { object }, { objects, reads });
  expect(run.logs.map(({ message }) => message)).toEqual([names]);
});

it("it finds objects by each value in a list, and refuses one with too many", async () => {
  const owners = (...uids: string[]) => uids.map((uid) => ({ apiVersion: "v1", kind: "Node", name: uid, uid }));
  const owned = (name: string, ...uids: string[]) => ({
    ...kind,
    metadata: { name, namespace: "a", ownerReferences: owners(...uids) },
  });
  const reads = [{ ...kind, indexes: [{ name: "byOwner", field: ".metadata.ownerReferences[*].uid" }] }];
  const byOwner = { index: { byOwner: "u2" } };
  const some = [owned("x", "u1", "u2"), owned("y", "u2", "u2"), owned("z", "u3"), owned("none")];
  const run = await runHandler(namesIn(byOwner), { object }, { objects: some, reads });
  expect(run.logs.map(({ message }) => message)).toEqual(["x,y"]);
  const crowd = owned("crowd", ...Array.from({ length: 1001 }, (_, at) => `u${at}`));
  const refused = await runHandler(namesIn(byOwner), { object }, { objects: [crowd], reads });
  expect(String(refused.error)).toContain("WF_READS_INDEX");
});

it.each<[string, object[], object]>([
  ["a kind that they do not name", [{ apiVersion: "v1", kind: "Secret" }], {}],
  ["any kind where there are none", [], {}],
  ["a namespace that they leave out", [{ ...kind, namespaceSelector: { matchNames: ["a"] } }], { namespace: "b" }],
  ["an index that they do not have", [kind], { index: { byValue: "x" } }],
])("it refuses, as in production, %s", async (_, reads, query) => {
  const run = await runHandler(namesIn(query), { object }, { objects, reads: reads as never });
  expect(run.outcome).toBe("failed");
  expect(run.error).toBeInstanceOf(ForbiddenError);
  expect(String(run.error)).toContain("WF_READS_UNDECLARED");
});
