import { describe, expect, it } from "vitest";
import {
  type CustomResource,
  type Json,
  openApiV2,
  openApiV3,
  openApiV3Index,
} from "../../../runtime/cluster/schema/index.ts";
import { widgetSchema } from "./widget.ts";

const widgets: CustomResource = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  listKind: "WidgetList",
  plural: "widgets",
  namespaced: true,
  subresources: { status: true, scale: false },
  openAPIV3Schema: widgetSchema,
};

/** Every reference of a document, as the steps of a pointer. */
function* references(node: Json): Generator<string> {
  if (Array.isArray(node)) for (const item of node) yield* references(item);
  else if (typeof node === "object" && node !== null) {
    if (typeof node.$ref === "string") yield node.$ref;
    for (const child of Object.values(node)) yield* references(child);
  }
}
const follow = (document: Json, reference: string): unknown =>
  reference
    .split("/")
    .slice(1)
    .reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], document);

describe("the OpenAPI documents", () => {
  const documents = [
    openApiV2([widgets]),
    ...Object.keys((openApiV3Index([widgets]).paths ?? {}) as object).map((path) => {
      const document = openApiV3(path.replace(/^apis?\//, ""), [widgets]);
      if (!document) throw new Error(`the index lists ${path}, for which there is no document`);
      return document;
    }),
  ];

  it("hold what they refer to", () => {
    const loose = documents.flatMap((document) =>
      [...references(document)].filter((reference) => !follow(document, reference)),
    );
    expect(loose).toEqual([]);
  });

  it("give no operation the name of another", () => {
    for (const { paths } of documents) {
      const ids = JSON.stringify(paths).match(/"operationId":"[^"]+"/g) ?? [];
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  it("say of each kind's writes that they can be tried and their fields validated, which kubectl looks for", () => {
    const document = openApiV3("apps/v1", []);
    const path = follow(document ?? {}, "#/paths") as Record<string, { patch: unknown }>;
    expect(path["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]?.patch).toMatchObject({
      "x-kubernetes-action": "patch",
      "x-kubernetes-group-version-kind": { group: "apps", version: "v1", kind: "Deployment" },
      parameters: expect.arrayContaining([
        expect.objectContaining({ name: "dryRun", in: "query" }),
        expect.objectContaining({ name: "fieldValidation", in: "query" }),
      ]),
    });
  });

  it("say of a custom resource what its CRD does, and of its metadata what there is", () => {
    const schema = follow(openApiV3("example.com/v1", [widgets]) ?? {}, "#/components/schemas/com.example.v1.Widget");
    expect(schema).toMatchObject({
      properties: {
        spec: { required: ["name"] },
        metadata: { allOf: [{ $ref: "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }] },
      },
      "x-kubernetes-group-version-kind": [{ group: "example.com", version: "v1", kind: "Widget" }],
    });
  });

  it("say in the second version what it can, a plain reference for one with a default", () => {
    const definitions = JSON.stringify(openApiV2([widgets]).definitions);
    expect(definitions.match(/"(oneOf|anyOf|allOf)":\[|"nullable":true/g)).toBeNull();
    expect(follow(openApiV2([]), "#/definitions/io.k8s.api.apps.v1.Deployment/properties/spec")).toEqual({
      $ref: "#/definitions/io.k8s.api.apps.v1.DeploymentSpec",
    });
  });

  it("have another address in the index when their resource changes, and no other does", () => {
    const changed = { ...widgets, openAPIV3Schema: { ...widgetSchema, description: "new" } };
    const before = openApiV3Index([widgets]).paths as Record<string, unknown>;
    const after = openApiV3Index([changed]).paths as Record<string, unknown>;
    const different = Object.keys(after).filter((path) => JSON.stringify(before[path]) !== JSON.stringify(after[path]));
    expect(different).toEqual(["apis/example.com/v1"]);
  });

  it("list only what is served", () => {
    const isServed = (groupVersion: string, resource: string) => groupVersion === "v1" && resource === "pods";
    expect(Object.keys(openApiV3Index([], isServed).paths as object)).toEqual(["api/v1"]);
    expect(openApiV3("apps/v1", [], isServed)).toBeUndefined();
    expect(Object.keys(openApiV3("v1", [], isServed)?.paths as object)).toEqual([
      "/api/v1/namespaces/{namespace}/pods",
      "/api/v1/pods",
      "/api/v1/namespaces/{namespace}/pods/{name}",
    ]);
  });
});
