import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { admin, createNamespace, unique } from "../target/fixture.ts";

describe("a server-side apply", () => {
  let namespace: string;
  let path: string;
  beforeAll(async () => {
    namespace = await createNamespace();
    path = `/api/v1/namespaces/${namespace}/configmaps`;
  });
  const config = (name: string, data: Record<string, string>, labels?: Record<string, string>) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, ...(labels ? { labels } : {}) },
    data,
  });

  test("creates what is not there, answering 201, then 200", async () => {
    const name = unique("a");
    const options = { body: config(name, { k: "v" }), type: patchType.apply, query: { fieldManager: "me" } };
    expect((await admin.reply("PATCH", `${path}/${name}`, options)).status).toBe(201);
    expect((await admin.reply("PATCH", `${path}/${name}`, options)).status).toBe(200);
  });

  test("takes YAML", async () => {
    const name = unique("yaml");
    const body = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata: { k: "off" }\n`;
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      body,
      type: patchType.apply,
      query: { fieldManager: "me" },
    });
    expect(reply.body.data).toEqual({ k: "off" });
  });

  test("records its fields as the manager's own", async () => {
    const name = unique("own");
    const made = await admin.apply(`${path}/${name}`, config(name, { k: "v" }), "me");
    expect(made.metadata.managedFields).toMatchObject([
      { manager: "me", operation: "Apply", apiVersion: "v1", fieldsV1: { "f:data": { "f:k": {} } } },
    ]);
  });

  test("of two managers keeps the fields of both", async () => {
    const name = unique("two");
    await admin.apply(`${path}/${name}`, config(name, { a: "1" }), "one");
    const both = await admin.apply(`${path}/${name}`, config(name, { b: "2" }), "two");
    expect(both.data).toEqual({ a: "1", b: "2" });
    expect(both.metadata.managedFields?.map((entry) => entry.manager).sort()).toEqual(["one", "two"]);
  });

  test("removes a field that its manager no longer names", async () => {
    const name = unique("drop");
    await admin.apply(`${path}/${name}`, config(name, { a: "1", b: "2" }), "me");
    expect((await admin.apply(`${path}/${name}`, config(name, { a: "1" }), "me")).data).toEqual({ a: "1" });
  });

  test("keeps a field that another manager owns too", async () => {
    const name = unique("shared");
    await admin.apply(`${path}/${name}`, config(name, { a: "1", b: "2" }), "one");
    await admin.apply(`${path}/${name}`, config(name, { b: "2" }), "two");
    expect((await admin.apply(`${path}/${name}`, config(name, { a: "1" }), "one")).data).toEqual({ a: "1", b: "2" });
  });

  test("of another's field with another value is a conflict that names field and manager", async () => {
    const name = unique("clash");
    await admin.apply(`${path}/${name}`, config(name, { k: "theirs" }), "them");
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      body: config(name, { k: "mine" }),
      type: patchType.apply,
      query: { fieldManager: "me" },
    });
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({
      reason: "Conflict",
      message: 'Apply failed with 1 conflict: conflict with "them": .data.k',
      details: { causes: [{ reason: "FieldManagerConflict", message: 'conflict with "them"', field: ".data.k" }] },
    });
    expect((await admin.get(`${path}/${name}`)).data).toEqual({ k: "theirs" });
  });

  test("with force takes the field over", async () => {
    const name = unique("force");
    await admin.apply(`${path}/${name}`, config(name, { k: "theirs" }), "them");
    const forced = await admin.apply(`${path}/${name}`, config(name, { k: "mine" }), "me", { force: true });
    expect(forced.data).toEqual({ k: "mine" });
    const owners = forced.metadata.managedFields?.filter((entry) => JSON.stringify(entry.fieldsV1).includes("f:k"));
    expect(owners?.map((entry) => entry.manager)).toEqual(["me"]);
  });

  test("conflicts with a field that an update wrote", async () => {
    const name = unique("updated");
    await admin.post(path, config(name, { k: "v" }), { fieldManager: "writer" });
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      body: config(name, { k: "w" }),
      type: patchType.apply,
      query: { fieldManager: "me" },
    });
    expect(reply.status).toBe(409);
    expect(reply.body.message).toContain('conflict with "writer" using v1');
  });

  test("that changes nothing leaves the resourceVersion", async () => {
    const name = unique("same");
    const first = await admin.apply(`${path}/${name}`, config(name, { k: "v" }), "me");
    const second = await admin.apply(`${path}/${name}`, config(name, { k: "v" }), "me");
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("merges containers by name between managers", async () => {
    const name = unique("d");
    const at = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
    const labels = { app: name };
    const deployment = (containers: object[]) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    });
    await admin.apply(at, deployment([{ name: "main", image: "i:1" }]), "one");
    const both = await admin.apply(at, deployment([{ name: "side", image: "i:2" }]), "two");
    expect(both.spec.template.spec.containers.map((c: { name: string }) => c.name).sort()).toEqual(["main", "side"]);
    const left = await admin.apply(at, { apiVersion: "apps/v1", kind: "Deployment", metadata: { name } }, "two");
    expect(left.spec.template.spec.containers.map((c: { name: string }) => c.name)).toEqual(["main"]);
  });

  test("without a field manager is refused", async () => {
    const name = unique("nobody");
    const reply = await admin.reply("PATCH", `${path}/${name}`, { body: config(name, {}), type: patchType.apply });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("fieldManager: Required value: is required for apply patch");
  });

  test("of a body that carries managedFields is refused", async () => {
    const name = unique("managed");
    const made = await admin.apply(`${path}/${name}`, config(name, { k: "v" }), "me");
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      body: made,
      type: patchType.apply,
      query: { fieldManager: "me" },
    });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain("metadata.managedFields must be nil");
  });
});
