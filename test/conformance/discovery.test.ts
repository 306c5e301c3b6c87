import { describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { defineWidgets } from "../target/crd.ts";
import { admin, createNamespace, eventually, unique } from "../target/fixture.ts";

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

describe("discovery", () => {
  test("tells the server's version", async () => {
    expect(await admin.get("/version")).toMatchObject({
      major: "1",
      minor: expect.stringMatching(/^\d+/),
      gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/),
    });
  });

  test("lists the core versions, the groups, and each group's preferred version", async () => {
    expect(await admin.get("/api")).toMatchObject({ kind: "APIVersions", versions: ["v1"] });
    const { groups } = await admin.get("/apis");
    const apps = groups.find((group: Body) => group.name === "apps");
    expect(apps).toMatchObject({
      versions: [{ groupVersion: "apps/v1", version: "v1" }],
      preferredVersion: { groupVersion: "apps/v1", version: "v1" },
    });
    expect(await admin.get("/apis/apps")).toMatchObject({ kind: "APIGroup", name: "apps" });
  });

  test("of the core group tells scope, verbs and short names, subresources included", async () => {
    const list = await admin.get("/api/v1");
    expect(list).toMatchObject({ kind: "APIResourceList", groupVersion: "v1" });
    const named = (name: string) => list.resources.find((resource: Body) => resource.name === name);
    expect(named("configmaps")).toMatchObject({
      kind: "ConfigMap",
      namespaced: true,
      singularName: "configmap",
      shortNames: ["cm"],
    });
    expect(named("configmaps").verbs.sort()).toEqual([
      "create",
      "delete",
      "deletecollection",
      "get",
      "list",
      "patch",
      "update",
      "watch",
    ]);
    expect(named("namespaces")).toMatchObject({ kind: "Namespace", namespaced: false });
    expect(named("namespaces").verbs).not.toContain("deletecollection");
    expect(named("serviceaccounts/token")).toMatchObject({
      kind: "TokenRequest",
      group: "authentication.k8s.io",
      verbs: ["create"],
    });
    expect(named("pods/status")).toMatchObject({ kind: "Pod" });
  });

  test("of a group tells its scale subresources", async () => {
    const list = await admin.get("/apis/apps/v1");
    const scale = list.resources.find((resource: Body) => resource.name === "deployments/scale");
    expect(scale).toMatchObject({ kind: "Scale", group: "autoscaling", version: "v1" });
  });

  test("aggregated gives everything in two requests", async () => {
    for (const path of ["/api", "/apis"]) {
      const reply = await admin.reply("GET", path, { headers: { accept: aggregated } });
      expect(reply.headers["content-type"]).toContain("as=APIGroupDiscoveryList");
      expect(reply.body).toMatchObject({ kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2" });
    }
    const { items } = await admin.get("/apis", {}, { accept: aggregated });
    const apps = items.find((item) => item.metadata.name === "apps");
    const deployments = apps?.versions[0].resources.find((resource: Body) => resource.resource === "deployments");
    expect(deployments).toMatchObject({
      scope: "Namespaced",
      singularResource: "deployment",
      shortNames: ["deploy"],
      responseKind: { kind: "Deployment" },
    });
    expect(deployments.subresources.map((sub: Body) => sub.subresource).sort()).toEqual(["scale", "status"]);
  });

  test("aggregated answers 304 to its own etag", async () => {
    const first = await admin.reply("GET", "/api", { headers: { accept: aggregated } });
    const etag = String(first.headers.etag);
    const again = await admin.reply("GET", "/api", { headers: { accept: aggregated, "if-none-match": etag } });
    expect(again.status).toBe(304);
  });

  test("shows a custom resource in both forms, with its short names and categories", async () => {
    const { group } = await defineWidgets({ names: { shortNames: ["wdg"], categories: ["toys"] } });
    const list = await admin.get(`/apis/${group}/v1`);
    const named = (name: string) => list.resources.find((resource: Body) => resource.name === name);
    expect(named("widgets")).toMatchObject({
      kind: "Widget",
      namespaced: true,
      shortNames: ["wdg"],
      categories: ["toys"],
    });
    expect(named("widgets").verbs).toContain("watch");
    expect(named("widgets/status")).toMatchObject({ kind: "Widget" });
    expect(named("widgets/scale")).toMatchObject({ kind: "Scale", group: "autoscaling", version: "v1" });
    const found = await eventually(
      () => admin.get("/apis", {}, { accept: aggregated }),
      (body) => body.items.some((item) => item.metadata.name === group),
    );
    const item = found.items.find((entry) => entry.metadata.name === group);
    expect(item?.versions[0].resources[0]).toMatchObject({
      resource: "widgets",
      shortNames: ["wdg"],
      responseKind: { kind: "Widget" },
    });
  });

  test("prefers a custom resource's stable version", async () => {
    const schema = { openAPIV3Schema: { type: "object" } };
    const versions = ["v1alpha1", "v1", "v2beta1"].map((name) => ({
      name,
      served: true,
      storage: name === "v1",
      schema,
    }));
    const { group } = await defineWidgets({ versions });
    const found = await eventually(
      () => admin.reply("GET", `/apis/${group}`),
      (reply) => reply.body.versions?.length === 3,
    );
    expect(found.body.preferredVersion.version).toBe("v1");
    expect(found.body.versions.map((version: Body) => version.version)).toEqual(["v1", "v2beta1", "v1alpha1"]);
  });

  test("serves OpenAPI v3 by group, a custom resource's schema included", async () => {
    const { paths } = await admin.get("/openapi/v3");
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(["api/v1", "apis/apps/v1"]));
    const { group } = await defineWidgets();
    const { body } = await eventually(
      () => admin.reply("GET", `/openapi/v3/apis/${group}/v1`),
      (reply) => reply.status === 200,
    );
    const schemas = Object.values(body.components.schemas) as Body[];
    expect(schemas.find((schema) => schema.properties?.spec?.properties?.colour)).toBeDefined();
  });

  test("tells that the server is alive and ready", async () => {
    for (const path of ["/livez", "/readyz", "/healthz"]) expect((await admin.reply("GET", path)).text).toBe("ok");
  });
});

describe("a Table", () => {
  test("of a list has columns, a row for each object, and its metadata", async () => {
    const namespace = await createNamespace();
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    await admin.post(path, { metadata: { name: "s" }, stringData: { a: "1", b: "2" } });
    const body = await admin.get(path, {}, { accept: table });
    expect(body).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" });
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(body.columnDefinitions.map((column: Body) => [column.name, column.type])).toEqual([
      ["Name", "string"],
      ["Type", "string"],
      ["Data", "string"],
      ["Age", "string"],
    ]);
    expect(body.rows).toHaveLength(1);
    expect(body.rows[0].cells.slice(0, 3)).toEqual(["s", "Opaque", 2]);
    expect(body.rows[0].object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "s", namespace } });
  });

  test("of one object has one row", async () => {
    const body = await admin.get("/api/v1/namespaces/default", {}, { accept: table });
    expect(body.rows).toHaveLength(1);
    expect(body.rows[0].cells.slice(0, 2)).toEqual(["default", "Active"]);
  });

  test("with includeObject carries whole objects, or none", async () => {
    const namespace = await createNamespace();
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    await admin.post(path, { metadata: { name: "s" } });
    const whole = await admin.get(path, { includeObject: "Object" }, { accept: table });
    expect(whole.rows[0].object).toMatchObject({ kind: "Secret", type: "Opaque" });
    const none = await admin.get(path, { includeObject: "None" }, { accept: table });
    expect(none.rows[0].object ?? null).toBeNull();
  });

  test("of a custom resource has its definition's columns", async () => {
    const columns = [
      { name: "Size", type: "integer", jsonPath: ".spec.size" },
      { name: "Phase", type: "string", jsonPath: ".status.phase", description: "how it is" },
      { name: "Detail", type: "string", jsonPath: ".spec.detail", priority: 1 },
    ];
    const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: open },
      additionalPrinterColumns: columns,
    };
    const { in: at, widget } = await defineWidgets({ versions: [version] });
    const path = at(await createNamespace());
    await admin.post(path, widget(unique("w"), { size: 7, detail: "d" }));
    const body = await admin.get(path, {}, { accept: table });
    expect(body.columnDefinitions.map((column: Body) => column.name)).toEqual(["Name", "Size", "Phase", "Detail"]);
    expect(body.columnDefinitions[3]).toMatchObject({ priority: 1 });
    expect(body.rows[0].cells.slice(1)).toEqual([7, null, "d"]);
  });

  test("of a custom resource without columns shows name and age", async () => {
    const { in: at } = await defineWidgets();
    const body = await admin.get(at(await createNamespace()), {}, { accept: table });
    expect(body.columnDefinitions.map((column: Body) => column.name)).toEqual(["Name", "Age"]);
  });
});
