import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  applyDefaults,
  builtInSchema,
  type JsonObject,
  prune,
  type Schema,
} from "../../../runtime/cluster/schema/index.ts";
import { widget, widgetOf } from "./widget.ts";

const built = (group: string, version: string, kind: string): Schema => {
  const schema = builtInSchema(group, version, kind);
  if (!schema) throw new Error(`no ${kind}`);
  return schema;
};
const anyObject = fc.object({
  maxDepth: 4,
  key: fc.constantFrom("spec", "ports", "name", "free", "x", "metadata", "__proto__"),
});

describe("pruning", () => {
  it("names each unknown field by its path and drops it", () => {
    const object = widgetOf({ name: "a", x: 1, ports: [{ name: "p", y: 2 }] }, { z: 3 });
    const { object: kept, unknown } = prune(widget, object);
    expect(unknown).toEqual(["spec.ports[0].y", "spec.x", "z"]);
    expect(kept).toEqual(widgetOf({ name: "a", ports: [{ name: "p" }] }));
  });

  it("keeps what a schema with preserve-unknown-fields does not know", () => {
    const object = widgetOf({ name: "a", free: { deep: [{ x: null }] } });
    expect(prune(widget, object)).toEqual({ object, unknown: [] });
  });

  it("knows the fields of metadata, of a custom resource and of one embedded in it", () => {
    const child = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", nope: 1 }, spec: { any: 1 } };
    const object = { ...widgetOf({ name: "a", child }), metadata: { name: "w", labels: { a: "b" }, nope: 1 } };
    expect(prune(widget, object).unknown).toEqual(["metadata.nope", "spec.child.metadata.nope"]);
  });

  it("knows the fields of built-in kinds, those of references included", () => {
    const containers = [{ name: "c", image: "i", imagePull: "x" }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers } };
    expect(prune(built("", "v1", "Pod"), pod).unknown).toEqual(["spec.containers[0].imagePull"]);
  });

  it("keeps a CRD's schema whole, which refers to itself", () => {
    const openAPIV3Schema = { type: "object", properties: { a: { type: "array", items: { type: "string", x: 1 } } } };
    const crd = { spec: { versions: [{ name: "v1", schema: { openAPIV3Schema } }] } };
    const { unknown } = prune(built("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), crd);
    expect(unknown.filter((path) => !path.includes("items"))).toEqual([]);
  });

  it("twice is the same as once", () => {
    fc.assert(
      fc.property(anyObject, (value) => {
        const once = prune(widget, JSON.parse(JSON.stringify(value)) as JsonObject).object;
        expect(prune(widget, once)).toEqual({ object: once, unknown: [] });
      }),
    );
  });
});

describe("defaults", () => {
  it("fill in what is absent, in items of lists and inside other defaults", () => {
    const filled = applyDefaults(
      widget,
      widgetOf({ name: "a", ports: [{ name: "p" }, { name: "q", protocol: "UDP" }] }),
    );
    expect(filled.spec).toEqual({
      name: "a",
      replicas: 1,
      nested: { level: "low" },
      ports: [
        { name: "p", protocol: "TCP" },
        { name: "q", protocol: "UDP" },
      ],
    });
  });

  it("take a null for absent unless the field is nullable", () => {
    const { spec } = applyDefaults(
      widget,
      widgetOf({ name: "a", replicas: null, mode: null, note: null, nested: null }),
    );
    expect(spec).toEqual({ name: "a", replicas: 1, note: null, nested: { level: "low" } });
  });

  it("make nothing of an object whose parent is absent", () => {
    expect(applyDefaults(widget, { metadata: {} })).toEqual({ metadata: {} });
  });

  it("give a built-in kind the parts that Go always writes", () => {
    const deployment = applyDefaults(built("apps", "v1", "Deployment"), {
      spec: { template: { spec: { containers: [{ name: "c" }] } } },
    });
    expect(deployment).toMatchObject({
      status: {},
      spec: { strategy: {}, template: { spec: { containers: [{ name: "c", resources: {} }] } } },
    });
  });

  it("twice are the same as once", () => {
    fc.assert(
      fc.property(anyObject, (value) => {
        const once = applyDefaults(widget, JSON.parse(JSON.stringify(value)) as JsonObject);
        expect(applyDefaults(widget, once)).toEqual(once);
      }),
    );
  });
});
