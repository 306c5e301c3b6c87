import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { admin, createNamespace, unique } from "../target/fixture.ts";

let all: string;
beforeAll(async () => {
  all = `/apis/apps/v1/namespaces/${await createNamespace()}/deployments`;
});
const deployment = async (replicas = 2): Promise<string> => {
  const name = unique("d");
  const labels = { app: name };
  await admin.post(all, {
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  });
  return `${all}/${name}`;
};

describe("the status subresource", () => {
  test("writes the status alone", async () => {
    const at = await deployment();
    const object = await admin.get(at);
    const written = await admin.put(`${at}/status`, {
      ...object,
      metadata: { ...object.metadata, labels: { sneaked: "in" } },
      spec: { ...object.spec, replicas: 9 },
      status: { replicas: 2, observedGeneration: 1 },
    });
    expect(written.status).toMatchObject({ replicas: 2, observedGeneration: 1 });
    expect(written.spec.replicas).toBe(2);
    expect(written.metadata).toMatchObject({ generation: 1 });
  });

  test("is not written through the object itself", async () => {
    const at = await deployment();
    const patched = await admin.patch(at, { status: { replicas: 5 }, spec: { replicas: 3 } });
    expect(patched.spec.replicas).toBe(3);
    expect(patched.status.replicas).toBeUndefined();
  });

  test("is ignored at creation", async () => {
    const name = unique("ns");
    const made = await admin.post(all.replace(/\/deployments$/, "/statefulsets"), {
      metadata: { name },
      spec: {
        serviceName: "s",
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
      status: { replicas: 9 },
    });
    expect(made.status.replicas).not.toBe(9);
  });

  test("is a conflict with an old resourceVersion", async () => {
    const at = await deployment();
    const old = await admin.get(at);
    await admin.patch(`${at}/status`, { status: { replicas: 1 } });
    expect((await admin.reply("PUT", `${at}/status`, { body: old })).status).toBe(409);
  });

  test("records its writer as manager of the subresource", async () => {
    const at = await deployment();
    const patched = await admin.patch(`${at}/status`, { status: { replicas: 1 } }, "merge", { fieldManager: "teller" });
    const entry = patched.metadata.managedFields?.find((field) => field.manager === "teller");
    expect(entry).toMatchObject({ operation: "Update", subresource: "status" });
  });

  test("of a kind without one is 404", async () => {
    const namespace = all.split("/")[5];
    const reply = await admin.reply("GET", `/api/v1/namespaces/${namespace}/secrets/any/status`);
    expect(reply.status).toBe(404);
  });
});

describe("the scale subresource", () => {
  test("tells spec and status replicas and the selector as text", async () => {
    const at = await deployment(2);
    await admin.patch(`${at}/status`, { status: { replicas: 1 } });
    const { metadata } = await admin.get(at);
    const scale = await admin.get(`${at}/scale`);
    expect(scale).toMatchObject({
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      metadata: {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
      },
      spec: { replicas: 2 },
      status: { replicas: 1, selector: `app=${metadata.name}` },
    });
  });

  test("sets spec.replicas of the object, as a change of its spec", async () => {
    const at = await deployment(2);
    const scale = await admin.get(`${at}/scale`);
    const set = await admin.put(`${at}/scale`, { ...scale, spec: { replicas: 4 } });
    expect(set.spec.replicas).toBe(4);
    expect(await admin.get(at)).toMatchObject({
      spec: { replicas: 4 },
      metadata: { generation: 2, resourceVersion: set.metadata.resourceVersion },
    });
  });

  test("can be patched", async () => {
    const at = await deployment(2);
    expect((await admin.patch(`${at}/scale`, { spec: { replicas: 0 } })).spec.replicas ?? 0).toBe(0);
    expect((await admin.get(at)).spec.replicas).toBe(0);
  });

  test("is a conflict with an old resourceVersion", async () => {
    const at = await deployment();
    const old = await admin.get(`${at}/scale`);
    await admin.patch(at, { metadata: { labels: { a: "b" } } });
    expect((await admin.reply("PUT", `${at}/scale`, { body: { ...old, spec: { replicas: 7 } } })).status).toBe(409);
  });

  test("refuses a negative number", async () => {
    const reply = await admin.reply("PATCH", `${await deployment()}/scale`, {
      body: { spec: { replicas: -1 } },
      type: patchType.merge,
    });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toMatchObject([{ field: "spec.replicas", reason: "FieldValueInvalid" }]);
  });

  test("wakes a watch of the object", async () => {
    const at = await deployment();
    const { metadata } = await admin.get(at);
    using watch = await admin.watch(all, {
      resourceVersion: metadata.resourceVersion,
      fieldSelector: `metadata.name=${metadata.name}`,
    });
    await admin.patch(`${at}/scale`, { spec: { replicas: 6 } });
    expect(await watch.next()).toMatchObject({
      type: "MODIFIED",
      object: { kind: "Deployment", spec: { replicas: 6 } },
    });
  });
});
