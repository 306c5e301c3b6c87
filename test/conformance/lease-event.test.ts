import { beforeAll, describe, expect, test } from "vitest";
import { admin, createNamespace, unique } from "../target/fixture.ts";

let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace();
});

describe("a Lease", () => {
  const path = () => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const spec = (holder: string) => ({
    holderIdentity: holder,
    leaseDurationSeconds: 15,
    acquireTime: "2026-01-02T03:04:05.123456Z",
    renewTime: "2026-01-02T03:04:05.123456Z",
    leaseTransitions: 0,
  });

  test("keeps its times to the microsecond", async () => {
    const made = await admin.post(path(), { metadata: { name: unique("lease") }, spec: spec("a") });
    expect(made.spec).toEqual(spec("a"));
  });

  test("that two try to take is taken by one", async () => {
    const name = unique("lease");
    const made = await admin.post(path(), { metadata: { name }, spec: spec("old") });
    const takers = ["a", "b", "c", "d"].map((holder) =>
      admin.reply("PUT", `${path()}/${name}`, { body: { ...made, spec: spec(holder) } }),
    );
    const replies = await Promise.all(takers);
    expect(replies.map((reply) => reply.status).sort()).toEqual([200, 409, 409, 409]);
    const winner = replies.find((reply) => reply.status === 200);
    expect((await admin.get(`${path()}/${name}`)).spec.holderIdentity).toBe(winner?.body.spec.holderIdentity);
  });

  test("that two try to create is created by one", async () => {
    const body = { metadata: { name: unique("lease") }, spec: spec("a") };
    const replies = await Promise.all([1, 2, 3].map(() => admin.reply("POST", path(), { body })));
    expect(replies.map((reply) => reply.status).sort()).toEqual([201, 409, 409]);
  });

  test("with a duration of nothing is Invalid", async () => {
    const body = { metadata: { name: unique("lease") }, spec: { ...spec("a"), leaseDurationSeconds: 0 } };
    const reply = await admin.reply("POST", path(), { body });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toMatchObject([
      { field: "spec.leaseDurationSeconds", reason: "FieldValueInvalid" },
    ]);
  });
});

describe("an Event", () => {
  const old = () => `/api/v1/namespaces/${namespace}/events`;
  const current = () => `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;

  test("is written in one API group and read in the other", async () => {
    const name = unique("event");
    const made = await admin.post(current(), {
      metadata: { name },
      eventTime: "2026-01-02T03:04:05.123456Z",
      reportingController: "my.domain/teller",
      reportingInstance: "teller-1",
      action: "Tell",
      reason: "Told",
      type: "Normal",
      note: "all is well",
      regarding: { apiVersion: "v1", kind: "ConfigMap", name: "c", namespace },
    });
    const seen = await admin.get(`${old()}/${name}`);
    expect(seen).toMatchObject({
      apiVersion: "v1",
      kind: "Event",
      metadata: { uid: made.metadata.uid },
      message: "all is well",
      reason: "Told",
      reportingComponent: "my.domain/teller",
      involvedObject: { kind: "ConfigMap", name: "c" },
    });
  });

  test("of the old form needs no controller, and is selected by what it is about", async () => {
    const involved = unique("about");
    const event = (name: string) => ({
      metadata: { name: unique("event") },
      reason: "Told",
      type: "Warning",
      involvedObject: { apiVersion: "v1", kind: "ConfigMap", name, namespace },
      source: { component: "teller" },
    });
    await admin.post(old(), event(involved));
    await admin.post(old(), event(unique("other")));
    const select = async (fieldSelector: string) => (await admin.get(old(), { fieldSelector })).items.length;
    expect(await select(`involvedObject.name=${involved}`)).toBe(1);
    expect(await select(`involvedObject.name=${involved},involvedObject.kind=ConfigMap,type=Warning,reason=Told`)).toBe(
      1,
    );
    expect(await select(`involvedObject.name=${involved},type=Normal`)).toBe(0);
  });

  test("about an object of another namespace is Invalid", async () => {
    const reply = await admin.reply("POST", old(), {
      body: {
        metadata: { name: unique("event") },
        involvedObject: { kind: "ConfigMap", name: "c", namespace: "default" },
      },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toContainEqual(expect.objectContaining({ field: "involvedObject.namespace" }));
  });

  test("of the current form without a controller is Invalid", async () => {
    const reply = await admin.reply("POST", current(), {
      body: { metadata: { name: unique("event") }, eventTime: "2026-01-02T03:04:05.123456Z", regarding: { namespace } },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toContainEqual(expect.objectContaining({ field: "reportingController" }));
  });

  test("is watched as it is written", async () => {
    const { resourceVersion } = (await admin.get(old())).metadata;
    using watch = await admin.watch(current(), { resourceVersion });
    const name = unique("event");
    await admin.post(old(), {
      metadata: { name },
      reason: "Told",
      involvedObject: { kind: "ConfigMap", name: "c", namespace },
    });
    expect(await watch.next()).toMatchObject({
      type: "ADDED",
      object: { apiVersion: "events.k8s.io/v1", reason: "Told", metadata: { name } },
    });
  });
});
