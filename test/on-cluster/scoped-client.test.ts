import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Access } from "../../runtime/access/access.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { HttpTransport } from "../../runtime/kube/http-transport.ts";
import { bearer, fixedIdentity } from "../../runtime/kube/identity.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { createKube } from "../../sdk/client.ts";
import { createOrUpdate } from "../../sdk/create-or-update.ts";
import {
  AlreadyExistsError,
  ConflictError,
  errorFrom,
  ForbiddenError,
  InvalidError,
  KubeError,
  NotFoundError,
} from "../../sdk/errors.ts";
import { ensureFinalizer, removeFinalizer } from "../../sdk/finalizer.ts";
import type { V1ConfigMap } from "../../sdk/kubernetes.ts";
import type { KubeObject } from "../../sdk/object.ts";
import type { Call } from "../../sdk/operations.ts";
import { ownerReference } from "../../sdk/owner.ts";
import { getOrUndefined, listAll } from "../../sdk/reading.ts";
import { caller, everything, manifestOf, ownObjects } from "../access/api-server.ts";
import { admin, createNamespace } from "../target/fixture.ts";

const { access: administrator } = inject("shared");
const functions = new Map([["f", manifestOf({ permissions: [everything] })]]);
let namespace: string;
let transport: KubeTransport;
let access: Access;

beforeAll(async () => {
  namespace = await createNamespace();
  const { url: server, ca, cert, key, token } = administrator;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: bearer(token) };
  const identity = fixedIdentity({ headers, tls: { ca, ...(cert && { cert }), ...(key && { key }) } });
  transport = new HttpTransport({ server, identity, clock: systemClock, userAgent: "watchfire", description: server });
  const discovery = new Discovery(transport, systemClock);
  const log = pino({ level: "silent" });
  access = new Access({
    transport,
    own: ownObjects,
    discovery,
    functions,
    clock: systemClock,
    random: Math.random,
    log,
  });
});

afterAll(async () => {
  await access?.close();
  await transport?.close();
});

/** The guest's client connected to the parent's half, as in the sandbox. */
const call = (async (operation: string, args: unknown) => {
  const reply = await access.call(caller, operation, JSON.stringify(args), new AbortController().signal);
  if (!reply.ok) throw errorFrom(reply.error);
  return JSON.parse(reply.json);
}) as Call;
const kube = createKube({ call, pause: async () => {} });

const configMap = (name: string, data = {}): V1ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data,
});
const pathOf = (name: string) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
const refOf = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", name, namespace });

describe("the scoped client on a cluster", () => {
  it("creates, reads, changes and deletes an object", async () => {
    const created = await kube.create(configMap("whole", { a: "1" }));
    expect(created.metadata?.uid).toBeTruthy();
    await kube.patch(refOf("whole"), { data: { b: "2" } });
    const changed = await kube.retryOnConflict<V1ConfigMap>(refOf("whole"), (object) => {
      object.data = { ...object.data, c: "3" };
    });
    expect(changed.data).toEqual({ a: "1", b: "2", c: "3" });
    await expect(kube.update({ ...created, data: {} })).rejects.toBeInstanceOf(ConflictError);
    await kube.delete(refOf("whole"));
    await expect(kube.get(refOf("whole"))).rejects.toBeInstanceOf(NotFoundError);
  });

  it("applies in the function's own name, and says who owns what", async () => {
    const applied = await kube.apply<KubeObject & V1ConfigMap>(configMap("applied", { a: "1" }));
    const managers = (applied.metadata as { managedFields?: { manager: string; operation: string }[] }).managedFields;
    expect(managers).toMatchObject([{ manager: "watchfire:f", operation: "Apply" }]);
    expect((await kube.apply(configMap("applied", { b: "2" }))).data).toEqual({ b: "2" });
  });

  it("applies a text of any characters as it creates it", async () => {
    const characters = [
      "\u007f",
      "\u0085",
      "\u00a0",
      "\u2028",
      "\u2029",
      "\ufeff",
      "\ufffd",
      "é",
      "\u{1f525}",
      '\t\n\r"\\',
    ];
    const text = characters.join("x");
    for (const write of [kube.create, kube.apply]) {
      const { metadata, ...object } = configMap(write === kube.apply ? "any-applied" : "any-created", { text });
      const annotations = Object.fromEntries(characters.map((each, index) => [`n${index}`, each]));
      const written = await write<V1ConfigMap>({ ...object, metadata: { ...metadata, annotations } });
      expect([written.data, written.metadata.annotations]).toEqual([{ text }, annotations]);
    }
  });

  it("lists what a selector selects, page by page", async () => {
    for (const name of ["p1", "p2", "p3"]) {
      const object = configMap(name);
      await kube.create({ ...object, metadata: { ...object.metadata, labels: { paged: "yes" } } });
    }
    const query = { apiVersion: "v1", kind: "ConfigMap", labelSelector: "paged=yes", limit: 2 };
    const first = await kube.list(query);
    const second = await kube.list({ ...query, continue: first.metadata.continue ?? "" });
    expect([...first.items, ...second.items].map(({ kind, metadata }) => [kind, metadata?.name])).toEqual([
      ["ConfigMap", "p1"],
      ["ConfigMap", "p2"],
      ["ConfigMap", "p3"],
    ]);
  });

  it("scales a Deployment by its subresource, and writes its status by the other", async () => {
    const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
    await kube.create({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace },
      spec: { replicas: 1, selector: { matchLabels: { a: "b" } }, template },
    } as KubeObject);
    const web = { ...refOf("web"), apiVersion: "apps/v1", kind: "Deployment" };
    expect((await kube.getScale(web)).spec?.replicas).toBe(1);
    expect((await kube.setScale(web, 3)).spec?.replicas).toBe(3);
    const patched = await kube.patchStatus(web, { status: { observedGeneration: 2 } });
    expect(patched).toMatchObject({ spec: { replicas: 3 }, status: { observedGeneration: 2 } });
  });

  it("has every kind that it may list and delete, each of which can be listed", async () => {
    const kinds = await kube.kinds({ verbs: ["list", "delete"] });
    expect(kinds).toContainEqual(
      expect.objectContaining({ apiVersion: "apps/v1", kind: "Deployment", plural: "deployments", namespaced: true }),
    );
    expect(kinds.map(({ kind }) => kind)).not.toContain("Binding");
    expect(new Set(kinds.map(({ apiVersion, plural }) => `${apiVersion} ${plural}`)).size).toBe(kinds.length);
    for (const { apiVersion, kind } of kinds) await kube.list({ apiVersion, kind, limit: 1 });
  });

  it("restarts a Deployment, evicts a pod, and writes a subresource", async () => {
    const containers = [{ name: "c", image: "i" }];
    const template = { metadata: { labels: { a: "b" } }, spec: { containers } };
    const metadata = { name: "restarted", namespace };
    const spec = { selector: { matchLabels: { a: "b" } }, template };
    await kube.create({ apiVersion: "apps/v1", kind: "Deployment", metadata, spec } as KubeObject);
    const before = Date.now();
    const { spec: patched } = await kube.restart({ apiVersion: "apps/v1", kind: "Deployment", ...metadata });
    const { "kubectl.kubernetes.io/restartedAt": at } = patched?.template?.metadata?.annotations ?? {};
    expect(Math.abs(Date.parse(String(at)) - before)).toBeLessThan(60_000);
    const pod = { ...refOf("evicted"), kind: "Pod" };
    await kube.create({ apiVersion: "v1", kind: "Pod", metadata: { name: pod.name, namespace }, spec: { containers } });
    const target = { apiVersion: "v1", kind: "Node", name: "n1" };
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: pod.name }, target };
    await kube.subresource(pod, "binding", binding, { verb: "create" });
    expect((await kube.get(pod)).spec).toMatchObject({ nodeName: "n1" });
    const condition = { type: "example.com/Seen", status: "True" };
    await kube.subresource(pod, "status", { status: { conditions: [condition] } }, { type: "strategic" });
    expect((await kube.get(pod)).status).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining(condition)]),
    });
    await expect(kube.subresource(pod, "nosuch", {})).rejects.toBeInstanceOf(NotFoundError);
    expect(await kube.evict(pod, { gracePeriodSeconds: 0 })).toMatchObject({ status: "Success" });
    await expect(kube.get(pod)).rejects.toBeInstanceOf(NotFoundError);
    await expect(kube.evict(pod)).rejects.toBeInstanceOf(NotFoundError);
  });

  it("cannot create by apply or update where only they are granted, though the runtime could", async () => {
    functions.set("f", manifestOf({ permissions: [{ ...everything, verbs: ["get", "patch", "update"] }] }));
    try {
      const refusal = await kube.apply(configMap("sneaked")).catch((error) => error);
      expect(refusal).toBeInstanceOf(ForbiddenError);
      expect(refusal).toMatchObject({ refusedBy: "runtime", missingRule: expect.stringContaining("verbs: [create]") });
      await expect(kube.update(configMap("sneaked"))).rejects.toBeInstanceOf(NotFoundError);
      const forged = configMap("sneaked");
      await expect(kube.apply({ ...forged, metadata: { ...forged.metadata, uid: "made-up" } })).rejects.toBeInstanceOf(
        KubeError,
      );
      await expect(kube.get(refOf("sneaked"))).rejects.toBeInstanceOf(NotFoundError);
      expect((await kube.apply(configMap("p1", { by: "apply" }))).data).toEqual({ by: "apply" });
    } finally {
      functions.set("f", manifestOf({ permissions: [everything] }));
    }
  });

  it("passes the API server's judgement of an object on", async () => {
    await expect(kube.create(configMap("not ok"))).rejects.toBeInstanceOf(InvalidError);
    const wrong = { ...configMap("wrong"), data: { "not ok": "x" } };
    await expect(kube.create(wrong)).rejects.toBeInstanceOf(InvalidError);
  });

  it("emits Events that are counted", async () => {
    const object = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace };
    for (let n = 0; n < 3; n++) await call("events.emit", { object, type: "Normal", reason: "Seen", message: "again" });
    const { items } = await kube.list({
      apiVersion: "v1",
      kind: "Event",
      namespace,
      fieldSelector: "reason=Seen",
    });
    expect(items).toMatchObject([{ count: 3, message: "again", involvedObject: { name: "settings" } }]);
  });
});

describe("the tools of a controller's author on a cluster", () => {
  const wanted = (name: string, data: Record<string, string>, owner?: KubeObject) => ({
    ...configMap(name, data),
    metadata: { name, namespace, ...(owner && { ownerReferences: [ownerReference(owner)] }) },
  });

  it("bring an object to what it should be: fields that are no longer wanted go, others' stay", async () => {
    const changes: string[] = [];
    const states: Record<string, string>[] = [{ a: "1", b: "2" }, { a: "1", b: "2" }, { a: "3" }];
    for (const data of states) {
      changes.push((await createOrUpdate<V1ConfigMap>(kube, wanted("kept", data))).change);
      if (changes.length === 1) await admin.patch(pathOf("kept"), { data: { theirs: "x" } });
    }
    expect(changes).toEqual(["created", "unchanged", "updated"]);
    expect((await kube.get<V1ConfigMap>(refOf("kept"))).data).toEqual({ a: "3", theirs: "x" });
  });

  it("take no object that another controls", async () => {
    const [one, other] = [await kube.create(configMap("one")), await kube.create(configMap("other"))];
    await createOrUpdate<V1ConfigMap>(kube, wanted("owned", {}, one));
    const taken = createOrUpdate<V1ConfigMap>(kube, wanted("owned", { a: "1" }, other));
    await expect(taken).rejects.toBeInstanceOf(AlreadyExistsError);
    expect((await kube.get<V1ConfigMap>(refOf("owned"))).data ?? {}).toEqual({});
  });

  it("hold a delete up by a finalizer, beside those of others that come at the same time", async () => {
    const stale = await kube.create(configMap("final"));
    await admin.patch(pathOf("final"), { metadata: { finalizers: ["example.com/theirs"] } });
    const held = await ensureFinalizer(kube, stale, "example.com/ours");
    expect(held.metadata).toMatchObject({ finalizers: ["example.com/theirs", "example.com/ours"] });
    await kube.delete(refOf("final"));
    await admin.patch(pathOf("final"), { metadata: { finalizers: ["example.com/ours"] } });
    await removeFinalizer(kube, held, "example.com/ours");
    expect(await getOrUndefined(kube, refOf("final"))).toBeUndefined();
  });

  it("read a list page after page, each object once", async () => {
    const names = ["page-a", "page-b", "page-c", "page-d", "page-e"];
    for (const name of names) {
      await kube.create({ ...configMap(name), metadata: { name, namespace, labels: { paged: "whole" } } });
    }
    const query = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: "paged=whole", limit: 2 };
    const found = await listAll(kube, query);
    expect(found.map(({ metadata }) => metadata.name)).toEqual(names);
  });
});
