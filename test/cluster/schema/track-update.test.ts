import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FieldSet } from "../../../runtime/cluster/schema/apply/field-set.ts";
import {
  applyDefaults,
  builtInSchema,
  type JsonObject,
  type ManagedFieldsEntry,
  serverSideApply,
  trackUpdate,
} from "../../../runtime/cluster/schema/index.ts";
import { widget, widgetOf } from "./widget.ts";

const configMap = builtInSchema("", "v1", "ConfigMap") ?? {};
const config = (data: JsonObject, managedFields?: ManagedFieldsEntry[]): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name: "c",
    uid: "u",
    resourceVersion: "1",
    ...(managedFields && { managedFields: managedFields as unknown as JsonObject[] }),
  } as JsonObject,
  data,
});
const update = (before: JsonObject | undefined, after: JsonObject, manager: string, now = 0, subresource?: string) =>
  trackUpdate({ before, after, manager, operation: "Update", apiVersion: "v1", schema: configMap, now, subresource });

describe("the fields of a write that is no apply", () => {
  it("are those it added or changed, not the system's own", () => {
    const [entry, ...others] = update(undefined, config({ a: "1" }), "me", Date.UTC(2026, 0, 2, 3, 4, 5, 678));
    expect(entry).toEqual({
      manager: "me",
      operation: "Update",
      apiVersion: "v1",
      time: "2026-01-02T03:04:05Z",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { ".": {}, "f:a": {} } },
    });
    expect(others).toEqual([]);
  });

  it("are taken from those who had them", () => {
    const first = update(undefined, config({ a: "1", b: "1" }), "one");
    const second = update(config({ a: "1", b: "1" }, first), config({ a: "2", b: "1" }), "two", 1000);
    expect(second.map(({ manager, fieldsV1 }) => [manager, fieldsV1])).toEqual([
      ["one", { "f:data": { ".": {}, "f:b": {} } }],
      ["two", { "f:data": { "f:a": {} } }],
    ]);
  });

  it("are nobody's once removed, and their owner's entry goes with its last field", () => {
    const first = update(undefined, config({ a: "1" }), "one");
    const second = update(config({ a: "1" }, first), config({ a: "1", b: "2" }), "two");
    const third = update(config({ a: "1", b: "2" }, second), config({ a: "1" }), "one");
    expect(third.map(({ manager }) => manager)).toEqual(["one"]);
  });

  it("leave an entry as it was if nothing changed", () => {
    const first = update(undefined, config({ a: "1" }), "one", 1000);
    expect(update(config({ a: "1" }, first), config({ a: "1" }), "one", 9000)).toEqual(first);
  });

  it("are kept apart by subresource", () => {
    const [entry] = update(undefined, config({ a: "1" }), "me", 0, "status");
    expect(entry?.subresource).toBe("status");
  });

  it("are forgotten when a client resets them, and not tracked again before an apply", () => {
    const first = update(undefined, config({ a: "1" }), "me");
    const reset = config({ a: "1" }, [{} as ManagedFieldsEntry]);
    expect(update(config({ a: "1" }, first), reset, "me")).toEqual([]);
    expect(update(config({ a: "1" }), config({ a: "2" }), "me")).toEqual([]);
  });

  it("of more than ten managers are merged into one, oldest first", () => {
    let object = config({ k0: "0" }, update(undefined, config({ k0: "0" }), "n0"));
    for (let index = 1; index < 13; index++) {
      const data = { ...(object.data as JsonObject), [`k${index}`]: "1" };
      object = config(data, update(object, config(data), `n${index}`, index * 1000));
    }
    const { managedFields } = object.metadata as unknown as { managedFields: ManagedFieldsEntry[] };
    expect(managedFields).toHaveLength(10);
    expect(managedFields[0]?.manager).toBe("ancient-changes");
    expect(managedFields[0]?.fieldsV1).toEqual({
      "f:data": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {} },
    });
  });

  it("of a built-in kind leave out the structures that are always there", () => {
    const lease = builtInSchema("coordination.k8s.io", "v1", "Lease") ?? {};
    const after = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "l" },
      spec: { holderIdentity: "h" },
    };
    const request = { before: undefined, after, manager: "me", operation: "Update", apiVersion: "v1", now: 0 } as const;
    expect(trackUpdate({ ...request, schema: lease })[0]?.fieldsV1).toEqual({ "f:spec": { "f:holderIdentity": {} } });
    const own = trackUpdate({ ...request, after: widgetOf({ name: "a", tags: ["t"] }), schema: widget });
    expect(own[0]?.fieldsV1).toEqual({ "f:spec": { ".": {}, "f:name": {}, "f:tags": { ".": {}, 'v:"t"': {} } } });
  });

  it("stay, unlike those of an apply, when the manager writes without them", () => {
    const made = config({ a: "1" }, update(undefined, config({ a: "1" }), "cli"));
    const applied = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { b: "2" } };
    const result = serverSideApply({
      live: made,
      applied,
      manager: "cli",
      apiVersion: "v1",
      force: false,
      schema: configMap,
      now: 0,
    });
    expect(result).toMatchObject({ object: { data: { a: "1", b: "2" } } });
  });

  it("of fields that the endpoint resets are nobody's", () => {
    const after = applyDefaults(widget, widgetOf({ name: "a" }, { status: { phase: "x" } }));
    const request = {
      before: undefined,
      after,
      manager: "me",
      operation: "Update",
      apiVersion: "v1",
      schema: widget,
      now: 0,
    } as const;
    const [entry] = trackUpdate({ ...request, resetFields: [["status"]] });
    expect(Object.keys(entry?.fieldsV1 ?? {})).toEqual(["f:spec"]);
  });
});

describe("a set of fields", () => {
  const fields = fc.letrec<{ node: JsonObject }>((tie) => ({
    node: fc.dictionary(
      fc.constantFrom(".", "f:a", "f:b", 'k:{"n":"x"}', 'v:"y"', "i:0"),
      fc.oneof({ depthSize: "small" }, fc.constant({}), tie("node")),
      { maxKeys: 3 },
    ) as fc.Arbitrary<JsonObject>,
  })).node;

  it("is read as it was written", () => {
    fc.assert(
      fc.property(fields, (source) => {
        const set = FieldSet.parse(source);
        expect(FieldSet.parse(set.format()).equals(set)).toBe(true);
      }),
    );
  });

  it("obeys the laws of sets", () => {
    fc.assert(
      fc.property(fields, fields, (left, right) => {
        const [a, b] = [FieldSet.parse(left), FieldSet.parse(right)];
        expect(a.union(b).equals(b.union(a))).toBe(true);
        expect(a.intersection(b).equals(b.intersection(a))).toBe(true);
        expect(a.difference(b).union(a.intersection(b)).equals(a)).toBe(true);
        expect(a.difference(b).intersection(b).isEmpty).toBe(true);
        for (const path of a.union(b).paths()) expect(a.has(path) || b.has(path)).toBe(true);
      }),
    );
  });
});
