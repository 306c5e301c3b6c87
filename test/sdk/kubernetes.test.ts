import { readFileSync } from "node:fs";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { KubeObject } from "../../sdk/kube.ts";
import type {
  V1ConfigMap,
  V1CustomResourceDefinition,
  V1JSONSchemaProps,
  V1Lease,
  V1Pod,
} from "../../sdk/kubernetes.ts";
import { folder, models, render } from "./kubernetes-types.ts";

describe("the types of Kubernetes", () => {
  it("hold every stable type of the client-node that is installed", () => {
    for (const [name, text] of Object.entries(render())) expect(readFileSync(folder + name, "utf8")).toBe(text);
  });

  it("have timestamps as the text that a watch carries", () => {
    type Meta = NonNullable<V1Pod["metadata"]>;
    expectTypeOf<Meta["creationTimestamp"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<NonNullable<V1Lease["spec"]>["renewTime"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<V1ConfigMap["data"]>().toEqualTypeOf<{ [key: string]: string } | undefined>();
  });

  it("name each field as JSON does", () => {
    expectTypeOf<V1JSONSchemaProps>().toHaveProperty("default");
    expectTypeOf<V1JSONSchemaProps>().toHaveProperty("$ref");
    expectTypeOf<V1JSONSchemaProps>().toHaveProperty("x-kubernetes-preserve-unknown-fields");
    type Version = V1CustomResourceDefinition["spec"]["versions"][number];
    expectTypeOf<Version>().toHaveProperty("schema");
  });

  it("are objects that the client takes", () => {
    expectTypeOf<V1Pod>().toExtend<KubeObject>();
    expectTypeOf<V1CustomResourceDefinition>().toExtend<KubeObject>();
  });

  it("know every field that client-node renames", () => {
    const renamed = new Set<string>();
    for (const [, model] of models) {
      for (const { name, baseName } of model.getAttributeTypeMap()) {
        if (name !== baseName) renamed.add(`${name} ${baseName}`);
      }
    }
    const unknown = [...renamed].filter((pair) => {
      const [name = "", baseName] = pair.split(" ");
      const expected = name.startsWith("x_kubernetes_") ? name.replaceAll("_", "-") : name.replace(/^_/, "");
      return baseName !== expected && pair !== "ref $ref" && pair !== "schema $schema";
    });
    expect(renamed.size).toBeGreaterThan(0);
    expect(unknown).toEqual([]);
  });
});
