import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { type Definition, defineWidgets, established, widgetDefinition, widgetSchema } from "../target/crd.ts";
import { admin, createNamespace, eventually, gone, removeAtEnd, unique } from "../target/fixture.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace();
});

describe.concurrent("a custom resource definition", () => {
  test("accepts its names, becomes Established, and then serves its kind", async () => {
    const group = `${unique("g")}.my.domain`;
    const crd = `${definitions}/widgets.${group}`;
    removeAtEnd(crd);
    expect((await admin.reply("GET", `/apis/${group}/v1/widgets`)).status).toBe(404);
    await admin.post(definitions, widgetDefinition(group));
    const body = await established(crd);
    const conditions = body.status.conditions.map((c: Record<string, string>) => [c.type, c.status, c.reason]);
    expect(conditions).toContainEqual(["NamesAccepted", "True", "NoConflicts"]);
    expect(conditions).toContainEqual(["Established", "True", "InitialNamesAccepted"]);
    expect(body.status).toMatchObject({
      acceptedNames: { plural: "widgets", kind: "Widget", listKind: "WidgetList", singular: "widget" },
      storedVersions: ["v1"],
    });
    const list = await eventually(
      () => admin.reply("GET", `/apis/${group}/v1/widgets`),
      (reply) => reply.status === 200,
    );
    expect(list.body).toMatchObject({ apiVersion: `${group}/v1`, kind: "WidgetList", items: [] });
  });

  test("whose name is not plural.group is Invalid", async () => {
    const body = widgetDefinition(`${unique("g")}.my.domain`);
    body.metadata.name = "widgets.other.domain";
    const reply = await admin.reply("POST", definitions, { body });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toContainEqual(expect.objectContaining({ field: "metadata.name" }));
  });

  test("without a storage version is Invalid", async () => {
    const version = { name: "v1", served: true, storage: false, schema: { openAPIV3Schema: open } };
    const reply = await admin.reply("POST", definitions, {
      body: widgetDefinition(`${unique("g")}.my.domain`, { versions: [version] }),
    });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("must have exactly one version marked as storage version");
  });

  test.each([
    ["kind", { kind: "No_Label" }, "may have mixed case, but should otherwise match: a DNS-1035 label"],
    ["kind", { kind: "9Lives" }, "may have mixed case, but should otherwise match: a DNS-1035 label"],
    ["listKind", { kind: "K".repeat(60) }, "must be no more than 63"],
    ["listKind", { kind: "Widget", listKind: "Widget" }, "kind and listKind may not be the same"],
  ])("whose %s cannot be one is Invalid: %j", async (field, names, says) => {
    const body = widgetDefinition(`${unique("g")}.my.domain`);
    body.spec.names = { plural: "widgets", ...names };
    const reply = await admin.reply("POST", definitions, { body });
    expect(reply.status).toBe(422);
    const message = expect.stringContaining(says);
    expect(reply.body.details.causes).toContainEqual(
      expect.objectContaining({ field: `spec.names.${field}`, message }),
    );
  });

  test("keeps the schema of a map's values, and holds objects to it", async () => {
    const group = `${unique("g")}.my.domain`;
    removeAtEnd(`${definitions}/widgets.${group}`);
    const value = { type: "object", required: ["size"], properties: { size: { type: "integer" } } };
    const spec = { type: "object", properties: { parts: { type: "object", additionalProperties: value } } };
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
    };
    const made = await admin.post(definitions, widgetDefinition(group, { versions: [version] }));
    const [kept] = made.spec.versions;
    expect(kept.schema.openAPIV3Schema.properties.spec.properties.parts.additionalProperties).toEqual(value);
    const widgets = `/apis/${group}/v1/namespaces/${namespace}/widgets`;
    await eventually(
      () => admin.reply("GET", widgets),
      (reply) => reply.status === 200,
    );
    const widget = (name: string, lid: object) => ({
      apiVersion: `${group}/v1`,
      kind: "Widget",
      metadata: { name },
      spec: { parts: { lid } },
    });
    const good = await admin.post(widgets, widget("good", { size: 3, colour: "red" }));
    expect(good.spec.parts).toEqual({ lid: { size: 3 } });
    const bad = await admin.reply("POST", widgets, { body: widget("bad", {}) });
    expect(bad.status).toBe(422);
    expect(bad.body.details.causes).toContainEqual(expect.objectContaining({ field: "spec.parts.lid.size" }));
  });

  test("without a structural schema is Invalid", async () => {
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object", properties: { spec: {} } } },
    };
    const reply = await admin.reply("POST", definitions, {
      body: widgetDefinition(`${unique("g")}.my.domain`, { versions: [version] }),
    });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain(
      "openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
    );
  });

  test("that is deleted takes its objects along, ends their watches, and answers 404", async () => {
    const { crd, in: at, widget } = await defineWidgets();
    const made = await admin.post(at(namespace), widget("w"));
    using watch = await admin.watch(at(namespace), { resourceVersion: made.metadata.resourceVersion });
    await admin.delete(crd);
    const events: string[] = [];
    await watch.until((event) => {
      events.push(event.type);
      return event.type === "DELETED";
    });
    expect(events).toEqual(["DELETED"]);
    await watch.ended();
    await gone(crd);
    await eventually(
      () => admin.reply("GET", at(namespace)),
      (reply) => reply.status === 404,
    );
  });

  test("that is made again starts empty, and its objects have new uids", async () => {
    const { crd, group, in: at, widget } = await defineWidgets();
    const first = await admin.post(at(namespace), widget("w"));
    await admin.delete(crd);
    await gone(crd);
    await admin.post(definitions, widgetDefinition(group));
    await established(crd);
    await eventually(
      () => admin.reply("GET", at(namespace)),
      (reply) => reply.status === 200,
    );
    expect((await admin.get(at(namespace))).items).toEqual([]);
    const second = await eventually(
      () => admin.reply("POST", at(namespace), { body: widget("w") }),
      (reply) => reply.status === 201,
    );
    expect(second.body.metadata.uid).not.toBe(first.metadata.uid);
  });
});

describe.concurrent("a custom resource", () => {
  let widgets: Definition;
  let path: string;
  beforeAll(async () => {
    widgets = await defineWidgets();
    path = widgets.in(namespace);
  });

  test("is created, read, replaced, patched and deleted like any object", async () => {
    const name = unique("w");
    const made = await admin.post(path, widgets.widget(name));
    expect(made).toMatchObject({
      apiVersion: widgets.apiVersion,
      kind: "Widget",
      metadata: { name, namespace, generation: 1 },
    });
    await admin.put(`${path}/${name}`, { ...made, spec: { ...made.spec, size: 4 } });
    await admin.patch(`${path}/${name}`, { spec: { colour: "blue" } });
    expect((await admin.get(`${path}/${name}`)).spec).toMatchObject({ size: 4, colour: "blue" });
    await admin.delete(`${path}/${name}`);
    expect((await admin.reply("GET", `${path}/${name}`)).body).toMatchObject({
      reason: "NotFound",
      message: `widgets.${widgets.group} "${name}" not found`,
      details: { name, group: widgets.group, kind: "widgets" },
    });
  });

  test("is watched with bookmarks of its kind", async () => {
    const path = widgets.in(await createNamespace());
    const { resourceVersion } = (await admin.post(path, widgets.widget("w"))).metadata;
    using watch = await admin.watch(path, { resourceVersion, allowWatchBookmarks: true, timeoutSeconds: 3 });
    await admin.post(path, widgets.widget("later"));
    const [first, ...rest] = await watch.untilEnd();
    expect(first).toMatchObject({ type: "ADDED", object: { kind: "Widget", metadata: { name: "later" } } });
    expect(rest.length).toBeGreaterThan(0);
    for (const event of rest)
      expect(event).toMatchObject({ type: "BOOKMARK", object: { kind: "Widget", apiVersion: widgets.apiVersion } });
  });

  test("counts a generation for each change of the spec, and none for its status", async () => {
    const name = unique("w");
    await admin.post(path, widgets.widget(name));
    expect((await admin.patch(`${path}/${name}`, { metadata: { labels: { a: "b" } } })).metadata.generation).toBe(1);
    expect((await admin.patch(`${path}/${name}/status`, { status: { phase: "Up" } })).metadata.generation).toBe(1);
    expect((await admin.patch(`${path}/${name}`, { spec: { size: 5 } })).metadata.generation).toBe(2);
  });

  test("with the status subresource keeps status and the rest apart", async () => {
    const name = unique("w");
    const made = await admin.post(path, { ...widgets.widget(name), status: { phase: "Sneaked" } });
    expect(made.status).toBeUndefined();
    expect((await admin.patch(`${path}/${name}`, { status: { phase: "Sneaked" } })).status).toBeUndefined();
    const told = await admin.patch(`${path}/${name}/status`, { status: { phase: "Up" }, spec: { size: 9 } });
    expect(told).toMatchObject({ spec: { size: 3 }, status: { phase: "Up" } });
  });

  test("without the subresources has its status in the object, and answers 404 on /status and /scale", async () => {
    const bare = await defineWidgets({
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: widgetSchema } }],
    });
    const at = bare.in(namespace);
    const made = await admin.post(at, { ...bare.widget("w"), status: { phase: "Own" } });
    expect(made.status).toEqual({ phase: "Own" });
    for (const sub of ["status", "scale"]) {
      expect((await admin.reply("GET", `${at}/w/${sub}`)).status).toBe(404);
      expect((await admin.reply("PATCH", `${at}/w/${sub}`, { body: {}, type: patchType.merge })).status).toBe(404);
    }
  });

  test("is scaled by the paths of its definition", async () => {
    const name = unique("w");
    await admin.post(path, widgets.widget(name, { size: 5, replicas: 2 }));
    await admin.patch(`${path}/${name}/status`, { status: { replicas: 1, selector: "app=w" } });
    const scale = await admin.get(`${path}/${name}/scale`);
    expect(scale).toMatchObject({
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      spec: { replicas: 2 },
      status: { replicas: 1, selector: "app=w" },
    });
    await admin.put(`${path}/${name}/scale`, { ...scale, spec: { replicas: 4 } });
    expect((await admin.get(`${path}/${name}`)).spec.replicas).toBe(4);
  });

  test("has no strategic merge patch", async () => {
    const name = unique("w");
    await admin.post(path, widgets.widget(name));
    const reply = await admin.reply("PATCH", `${path}/${name}`, { body: {}, type: patchType.strategic });
    expect(reply.status).toBe(415);
  });

  test("is applied server-side by the keys of its lists", async () => {
    const name = unique("w");
    const at = `${path}/${name}`;
    const parts = (list: object[]) => widgets.widget(name, { size: 3, parts: list });
    await admin.apply(at, parts([{ name: "a", value: "1" }]), "one");
    const both = await admin.apply(at, parts([{ name: "b", value: "2" }]), "two");
    expect(both.spec.parts).toEqual(
      expect.arrayContaining([
        { name: "a", value: "1" },
        { name: "b", value: "2" },
      ]),
    );
    const left = await admin.apply(at, widgets.widget(name), "one");
    expect(left.spec.parts).toEqual([{ name: "b", value: "2" }]);
  });

  test("of cluster scope lives outside namespaces", async () => {
    const { group, apiVersion } = await defineWidgets({ scope: "Cluster" });
    const made = await admin.post(`/apis/${group}/v1/widgets`, {
      apiVersion,
      kind: "Widget",
      metadata: { name: "w" },
      spec: { size: 1 },
    });
    expect(made.metadata.namespace).toBeUndefined();
    expect((await admin.reply("GET", `/apis/${group}/v1/namespaces/${namespace}/widgets`)).status).toBe(404);
  });

  test("must be of its definition's kind and version", async () => {
    const wrongKind = await admin.reply("POST", path, { body: { ...widgets.widget(unique("w")), kind: "Gadget" } });
    expect(wrongKind.status).toBe(422);
    expect(wrongKind.body.details.causes).toContainEqual(
      expect.objectContaining({ field: "kind", reason: "FieldValueInvalid" }),
    );
    const wrongVersion = await admin.reply("POST", path, {
      body: { ...widgets.widget(unique("w")), apiVersion: `${widgets.group}/v9` },
    });
    expect(wrongVersion.status).toBe(400);
  });

  test("in two versions is one object, seen in whichever is asked for", async () => {
    const version = (name: string, storage: boolean) => ({
      name,
      served: true,
      storage,
      schema: { openAPIV3Schema: open },
    });
    const { group, in: at } = await defineWidgets({ versions: [version("v1", true), version("v1beta1", false)] });
    const object = { apiVersion: `${group}/v1beta1`, kind: "Widget", metadata: { name: "w" }, spec: { any: 1 } };
    const made = await admin.post(at(namespace, "v1beta1"), object);
    expect(made.apiVersion).toBe(`${group}/v1beta1`);
    const seen = await admin.get(`${at(namespace, "v1")}/w`);
    expect(seen).toMatchObject({
      apiVersion: `${group}/v1`,
      spec: { any: 1 },
      metadata: { uid: made.metadata.uid, resourceVersion: made.metadata.resourceVersion },
    });
    using watch = await admin.watch(at(namespace, "v1"), { resourceVersion: made.metadata.resourceVersion });
    await admin.patch(`${at(namespace, "v1beta1")}/w`, { spec: { any: 2 } });
    expect(await watch.next()).toMatchObject({
      type: "MODIFIED",
      object: { apiVersion: `${group}/v1`, spec: { any: 2 } },
    });
  });

  test("in a version that is served no more answers 404 there", async () => {
    const version = (name: string, storage: boolean, served = true) => ({
      name,
      served,
      storage,
      schema: { openAPIV3Schema: open },
    });
    const { crd, in: at } = await defineWidgets({ versions: [version("v1", true), version("v2", false)] });
    await admin.patch(crd, { spec: { versions: [version("v1", true), version("v2", false, false)] } });
    await eventually(
      () => admin.reply("GET", at(namespace, "v2")),
      (reply) => reply.status === 404,
    );
    await eventually(
      () => admin.reply("GET", at(namespace, "v1")),
      (reply) => reply.status === 200,
    );
  });

  test("is selected by the fields that its definition names", async () => {
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: widgetSchema },
      selectableFields: [{ jsonPath: ".spec.colour" }],
    };
    const { in: at, widget } = await defineWidgets({ versions: [version] });
    await admin.post(at(namespace), widget("r"));
    await admin.post(at(namespace), widget("b", { size: 2, colour: "blue" }));
    const list = await admin.get(at(namespace), { fieldSelector: "spec.colour=blue" });
    expect(list.items.map((item) => item.metadata.name)).toEqual(["b"]);
    expect((await admin.reply("GET", at(namespace), { query: { fieldSelector: "spec.size=2" } })).status).toBe(400);
  });
});
