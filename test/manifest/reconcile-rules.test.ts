import { describe, expect, it } from "vitest";
import { checkExpression } from "../../runtime/engine/filter/check-expression.ts";
import { loadSpec } from "./manifest.ts";

const shops = "    - { name: shops, watch: { apiVersion: shop.example/v1, kind: Shop } }";
const pods = (key: string, watch = "") =>
  `    - { name: pods, watch: { apiVersion: v1, kind: Pod${watch} }, key: ${key} }`;
const owner = "{ owner: { apiVersion: shop.example/v1beta1, kind: Shop } }";
const load = (delivery: string, ...triggers: string[]) =>
  loadSpec(`  triggers:\n${triggers.join("\n")}\n  delivery: ${delivery}`, { checkExpression });

describe("a manifest of mode Reconcile", () => {
  it("is read: keys, and the time of a resync", async () => {
    const named = pods("{ expression: \"object.metadata.labels['shop']\" }");
    const { functions, lines } = await load("{ mode: Reconcile, resync: 10h }", shops, named);
    expect(lines).toEqual([]);
    expect(functions[0]?.delivery).toMatchObject({ mode: "Reconcile", resyncMs: 36_000_000 });
    expect(functions[0]?.triggers.map(({ key }) => key)).toEqual([
      undefined,
      { type: "expression", expression: "object.metadata.labels['shop']" },
    ]);
    const owned = await load("{ mode: Reconcile }", shops, pods(owner));
    expect(owned.functions[0]?.triggers[1]?.key).toEqual({
      type: "owner",
      apiVersion: "shop.example/v1beta1",
      kind: "Shop",
    });
  });

  it.each([
    ["no trigger without a key", "{ mode: Reconcile }", [pods(owner)], "spec.triggers: every trigger has a"],
    ["a resync without end", "{ mode: Reconcile, resync: 1ms }", [shops], "spec.delivery.resync: expected at least 1s"],
    [
      "objects of other namespaces than their keys', spread by namespace",
      "{ mode: Reconcile, shards: 8, shardBy: Namespace }",
      [shops, pods(owner)],
      "spec.delivery.shardBy: a trigger's `key` may run an object in a namespace that the trigger does not watch",
    ],
    [
      "schedules alone",
      "{ mode: Reconcile }",
      ["    - { schedule: { every: 1h } }"],
      "spec.triggers: every trigger has a `key`",
    ],
    [
      "two triggers without a key",
      "{ mode: Reconcile }",
      [shops, "    - { watch: { apiVersion: v1, kind: Pod } }"],
      "spec.triggers[1]: an earlier trigger has no `key` either",
    ],
    [
      "owners of another kind",
      "{ mode: Reconcile }",
      [shops, pods("{ owner: { apiVersion: apps/v1, kind: ReplicaSet } }")],
      "spec.triggers[1].key.owner: owners of kind ReplicaSet are not keys: this function reconciles Shop",
    ],
    [
      "a key that says two things",
      "{ mode: Reconcile }",
      [shops, pods(`{ expression: "object.metadata.name", owner: { apiVersion: shop.example/v1, kind: Shop } }`)],
      "spec.triggers[1].key: expected exactly one of owner, expression and all",
    ],
    [
      "an expression that gives no name",
      "{ mode: Reconcile }",
      [shops, pods('{ expression: "size(object.metadata.name)" }')],
      "spec.triggers[1].key.expression: the expression yields int, not a name or a list of names",
    ],
    [
      "an expression that compares",
      "{ mode: Reconcile }",
      [shops, pods('{ expression: "oldObject.metadata.name" }')],
      "spec.triggers[1].key.expression: the expression reads oldObject",
    ],
    [
      "an expression on what is not kept",
      "{ mode: Reconcile }",
      [shops, pods('{ expression: "object.spec.nodeName" }', ", lastBody: Metadata")],
      "spec.triggers[1].key.expression: the expression reads spec, but only metadata is read or kept",
    ],
    [
      "an object that is kept in part",
      "{ mode: Reconcile }",
      ["    - { watch: { apiVersion: v1, kind: Event, lastBody: Metadata } }"],
      "spec.triggers[0].watch.lastBody: the handler's `object` is the stored state",
    ],
    ["a key in mode All", "{ mode: All }", [shops, pods(owner)], "spec.triggers[1].key: in mode All"],
    ["a key in mode Latest", "{ mode: Latest }", [shops, pods(owner)], "spec.triggers[1].key: in mode Latest"],
    [
      "a key on a schedule",
      "{ mode: Reconcile }",
      [shops, '    - { schedule: { every: 1h }, key: { expression: "object.metadata.name" } }'],
      "spec.triggers[1].key: a schedule has no object",
    ],
    [
      "a resync of events",
      "{ resync: 1h }",
      [shops],
      "spec.delivery.resync: in mode All the handler receives changes only",
    ],
  ])("is refused with %s, with the reason and what to do", async (_, delivery, triggers, says) => {
    const { lines, faults } = await load(delivery, ...triggers);
    expect(lines.join("\n")).toContain(says);
    expect(lines).toHaveLength(1);
    expect(faults[0]?.code).toMatch(/^WF_MANIFEST_(INVALID_VALUE|EXPRESSION)$/);
  });
});
