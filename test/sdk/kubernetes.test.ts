import { readFileSync } from "node:fs";
import { describe, expect, expectTypeOf, it } from "vitest";
import type {
  V1ConfigMap,
  V1CustomResourceDefinition,
  V1JSONSchemaProps,
  V1Lease,
  V1Pod,
} from "../../sdk/kubernetes.ts";
import type { KubeObject } from "../../sdk/object.ts";
import { folder, render } from "./kubernetes-types.ts";

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

  it("say in Kubernetes' own words what a field means", () => {
    const { "types.ts": types } = render();
    const [, spec = ""] = /export interface V1DeploymentSpec \{([^}]*)\}/.exec(types) ?? [];
    expect(spec).toMatch(/\/\*\* Number of desired pods\..*\*\/\n {2}replicas\?: number;/);
  });

  it("import nothing of client-node, whose own types need a browser's", () => {
    for (const text of Object.values(render())) expect(text).not.toContain('client-node"');
  });
});
