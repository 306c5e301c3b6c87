import { beforeAll, describe, expect, test } from "vitest";
import { admin, createNamespace, gone, unique } from "../target/fixture.ts";

let namespace: string;
let path: string;
beforeAll(async () => {
  namespace = await createNamespace();
  path = `/api/v1/namespaces/${namespace}/configmaps`;
});

describe("a create", () => {
  test("answers 201 with the object and what the server adds to it", async () => {
    const name = unique("made");
    const reply = await admin.reply("POST", path, {
      body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { a: "b" } }, data: { k: "v" } },
    });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace, labels: { a: "b" } },
      data: { k: "v" },
    });
    expect(reply.body.metadata.uid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(reply.body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(await admin.get(`${path}/${name}`)).toEqual(reply.body);
  });

  test("with generateName makes a name of its own for each", async () => {
    const made = await Promise.all([1, 2, 3].map(() => admin.post(path, { metadata: { generateName: "gen-" } })));
    for (const object of made) expect(object.metadata.name).toMatch(/^gen-[a-z0-9]{5}$/);
    expect(new Set(made.map((object) => object.metadata.name)).size).toBe(3);
  });

  test("ignores the uid and the creationTimestamp that the client made up", async () => {
    const made = await admin.post(path, {
      metadata: { name: unique("up"), uid: "mine", creationTimestamp: "2001-01-01T00:00:00Z" },
    });
    expect(made.metadata.uid).not.toBe("mine");
    expect(made.metadata.creationTimestamp).not.toMatch(/^2001/);
  });

  test("takes YAML", async () => {
    const name = unique("yaml");
    const body = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  k: "on"\n`;
    const reply = await admin.reply("POST", path, { type: "application/yaml", body });
    expect(reply.status).toBe(201);
    expect(reply.body.data).toEqual({ k: "on" });
  });

  test("as a dry run answers as if, and stores nothing", async () => {
    const name = unique("dry");
    const reply = await admin.reply("POST", path, { body: { metadata: { name } }, query: { dryRun: "All" } });
    expect(reply.status).toBe(201);
    expect(reply.body.metadata.uid).toBeTruthy();
    expect((await admin.reply("GET", `${path}/${name}`)).status).toBe(404);
  });

  test("drops fields that the kind does not have, and warns of each where asked", async () => {
    const body = { metadata: { name: unique("odd") }, data: {}, colour: "red" };
    const reply = await admin.reply("POST", path, { body, query: { fieldValidation: "Warn" } });
    expect(reply.status).toBe(201);
    expect(reply.body).not.toHaveProperty("colour");
    expect(reply.headers.warning).toBe('299 - "unknown field \\"colour\\""');
  });

  test("with fieldValidation Strict refuses fields that the kind does not have", async () => {
    const body = { metadata: { name: unique("odd") }, colour: "red" };
    const reply = await admin.reply("POST", path, { body, query: { fieldValidation: "Strict" } });
    expect(reply.status).toBe(400);
    expect(reply.body.reason).toBe("BadRequest");
    expect(reply.body.message).toContain('strict decoding error: unknown field "colour"');
  });

  test("records its fields under the manager's name", async () => {
    const made = await admin.post(
      path,
      { metadata: { name: unique("own") }, data: { k: "v" } },
      { fieldManager: "me" },
    );
    expect(made.metadata.managedFields).toMatchObject([
      {
        manager: "me",
        operation: "Update",
        apiVersion: "v1",
        fieldsType: "FieldsV1",
        fieldsV1: { "f:data": { ".": {}, "f:k": {} } },
      },
    ]);
  });
});

describe("an update", () => {
  test("replaces the whole object, and keeps what the server owns", async () => {
    const name = unique("put");
    const made = await admin.post(path, { metadata: { name, labels: { a: "b" } }, data: { k: "v" } });
    const put = await admin.put(`${path}/${name}`, { metadata: { name }, data: { other: "w" } });
    expect(put.data).toEqual({ other: "w" });
    expect(put.metadata.labels).toBeUndefined();
    expect(put.metadata).toMatchObject({ uid: made.metadata.uid, creationTimestamp: made.metadata.creationTimestamp });
  });

  test("with an old resourceVersion is a conflict that changes nothing", async () => {
    const name = unique("stale");
    const old = await admin.post(path, { metadata: { name } });
    await admin.patch(`${path}/${name}`, { data: { k: "theirs" } });
    const reply = await admin.reply("PUT", `${path}/${name}`, { body: { ...old, data: { k: "mine" } } });
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({
      kind: "Status",
      status: "Failure",
      reason: "Conflict",
      code: 409,
      details: { name, kind: "configmaps" },
      message: `Operation cannot be fulfilled on configmaps "${name}": the object has been modified; please apply your changes to the latest version and try again`,
    });
    expect((await admin.get(`${path}/${name}`)).data).toEqual({ k: "theirs" });
  });

  test("with another uid is a conflict", async () => {
    const name = unique("uid");
    const made = await admin.post(path, { metadata: { name } });
    const body = { ...made, metadata: { ...made.metadata, uid: "00000000-0000-0000-0000-000000000000" } };
    const reply = await admin.reply("PUT", `${path}/${name}`, { body });
    expect(reply.status).toBe(409);
    expect(reply.body.message).toContain("Precondition failed: UID in precondition");
  });

  test("of many writers at once with one resourceVersion lets exactly one win", async () => {
    const name = unique("race");
    const made = await admin.post(path, { metadata: { name } });
    const writes = Array.from({ length: 8 }, (_, index) =>
      admin.reply("PUT", `${path}/${name}`, { body: { ...made, data: { winner: String(index) } } }),
    );
    const statuses = (await Promise.all(writes)).map((reply) => reply.status).sort();
    expect(statuses).toEqual([200, 409, 409, 409, 409, 409, 409, 409]);
  });

  test("of an object that is not there is NotFound", async () => {
    const name = unique("none");
    const reply = await admin.reply("PUT", `${path}/${name}`, { body: { metadata: { name } } });
    expect(reply.status).toBe(404);
  });

  test("whose body names another object is refused", async () => {
    const name = unique("this");
    await admin.post(path, { metadata: { name } });
    const reply = await admin.reply("PUT", `${path}/${name}`, { body: { metadata: { name: "that" } } });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain("the name of the object (that) does not match the name on the URL");
  });

  test("of an immutable ConfigMap's data is Invalid", async () => {
    const name = unique("fixed");
    await admin.post(path, { metadata: { name }, immutable: true, data: { k: "v" } });
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      body: { data: { k: "w" } },
      type: "application/merge-patch+json",
    });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toMatchObject([{ field: "data", reason: "FieldValueForbidden" }]);
  });
});

describe("a generation", () => {
  test("starts at 1, grows with the spec, and stays with metadata and status", async () => {
    const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    const name = unique("gen");
    const labels = { app: name };
    const made = await admin.post(deployments, {
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
    });
    expect(made.metadata.generation).toBe(1);
    const generation = async (body: unknown, sub = "") =>
      (await admin.patch(`${deployments}/${name}${sub}`, body)).metadata.generation;
    expect(await generation({ metadata: { labels: { x: "y" } } })).toBe(1);
    expect(await generation({ status: { observedGeneration: 1 } }, "/status")).toBe(1);
    expect(await generation({ spec: { replicas: 3 } })).toBe(2);
  });
});

describe("a delete", () => {
  test("answers with a Status that names what is gone", async () => {
    const name = unique("del");
    const made = await admin.post(path, { metadata: { name } });
    const reply = await admin.reply("DELETE", `${path}/${name}`);
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      kind: "Status",
      status: "Success",
      details: { name, kind: "configmaps", uid: made.metadata.uid },
    });
    expect((await admin.reply("GET", `${path}/${name}`)).status).toBe(404);
  });

  test("with a precondition that fails is a conflict, and nothing goes", async () => {
    const name = unique("pre");
    const made = await admin.post(path, { metadata: { name } });
    for (const preconditions of [{ uid: "00000000-0000-0000-0000-000000000000" }, { resourceVersion: "1" }]) {
      const reply = await admin.reply("DELETE", `${path}/${name}`, { body: { preconditions } });
      expect(reply.status).toBe(409);
      expect(reply.body.reason).toBe("Conflict");
    }
    const { uid, resourceVersion } = made.metadata;
    expect(
      (await admin.reply("DELETE", `${path}/${name}`, { body: { preconditions: { uid, resourceVersion } } })).status,
    ).toBe(200);
  });

  test("as a dry run removes nothing", async () => {
    const name = unique("dry");
    await admin.post(path, { metadata: { name } });
    await admin.delete(`${path}/${name}`, undefined, { dryRun: "All" });
    expect((await admin.reply("GET", `${path}/${name}`)).status).toBe(200);
  });

  test("waits for finalizers: the object is marked, still there, and goes with the last of them", async () => {
    const name = unique("fin");
    const made = await admin.post(path, { metadata: { name, finalizers: ["my.domain/a", "my.domain/b"] } });
    using watch = await admin.watch(path, {
      resourceVersion: made.metadata.resourceVersion,
      fieldSelector: `metadata.name=${name}`,
    });
    const marked = await admin.delete(`${path}/${name}`);
    expect(marked).toMatchObject({ kind: "ConfigMap", metadata: { name, deletionGracePeriodSeconds: 0 } });
    expect(marked.metadata.deletionTimestamp).toBeTruthy();
    await admin.patch(`${path}/${name}`, { metadata: { finalizers: ["my.domain/b"] } });
    expect((await admin.reply("GET", `${path}/${name}`)).status).toBe(200);
    await admin.patch(`${path}/${name}`, { metadata: { finalizers: null } });
    expect((await admin.reply("GET", `${path}/${name}`)).status).toBe(404);
    expect((await watch.several(3)).map((event) => event.type)).toEqual(["MODIFIED", "MODIFIED", "DELETED"]);
  });

  test("of what is being deleted already changes nothing, and no finalizer can be added", async () => {
    const name = unique("twice");
    await admin.post(path, { metadata: { name, finalizers: ["my.domain/a"] } });
    const first = await admin.delete(`${path}/${name}`);
    const second = await admin.delete(`${path}/${name}`);
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    const reply = await admin.reply("PATCH", `${path}/${name}`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: ["my.domain/a", "my.domain/new"] } },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("no new finalizers can be added if the object is being deleted");
  });

  test("then a create under the same name makes another object", async () => {
    const name = unique("again");
    const first = await admin.post(path, { metadata: { name } });
    await admin.delete(`${path}/${name}`);
    const second = await admin.post(path, { metadata: { name } });
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
  });

  test("of a collection removes what the selector means and answers with the list", async () => {
    const label = unique("sweep");
    for (const index of [1, 2, 3])
      await admin.post(path, { metadata: { name: `${label}-${index}`, labels: { sweep: label } } });
    const kept = await admin.post(path, { metadata: { name: unique("kept") } });
    const reply = await admin.reply("DELETE", path, { query: { labelSelector: `sweep=${label}` } });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ kind: "ConfigMapList" });
    expect(reply.body.items).toHaveLength(3);
    await gone(`${path}/${label}-1`);
    expect((await admin.reply("GET", `${path}/${kept.metadata.name}`)).status).toBe(200);
  });
});
