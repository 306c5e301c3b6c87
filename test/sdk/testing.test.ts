import { describe, expect, it } from "vitest";
import { ConflictError, NotFoundError } from "../../sdk/errors.ts";
import {
  defineHandler,
  defineReconciler,
  type KubeObject,
  PermanentError,
  RetryAfter,
  requeueAfter,
  wholeNumber,
} from "../../sdk/index.ts";
import type { V1ConfigMap } from "../../sdk/kubernetes.ts";
import { runHandler, runReconciler } from "../../sdk/testing.ts";

const settings: V1ConfigMap = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "a", labels: { sync: "true" } },
  data: { color: "red" },
};
const ref = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "a" };

describe("a handler in a unit test", () => {
  it("runs on an event, and what it did is told", async () => {
    const handler = defineHandler<V1ConfigMap>(async (event, ctx) => {
      ctx.log.info("seen", { attempt: event.attempt });
      ctx.metrics.increment("seen_total");
      const copy = {
        ...event.object,
        metadata: { name: "copy", namespace: "b" },
        data: { ...event.object.data, by: ctx.env.BY ?? "" },
      };
      await ctx.kube.apply(copy);
      await ctx.events.emit(event.object, { type: "Normal", reason: "Copied", message: "to b" });
    });
    const run = await runHandler(handler, { object: settings }, { env: { BY: "me" } });
    expect(run).toMatchObject({
      outcome: "ok",
      calls: [{ method: "apply", arguments: [{ metadata: { name: "copy" } }] }],
      logs: [{ level: "info", message: "seen", fields: { attempt: 1 } }],
      metrics: [{ name: "seen_total", value: 1 }],
      events: [{ reason: "Copied", object: { metadata: { name: "settings" } } }],
    });
    expect(run.objects.map(({ metadata, data }) => [metadata?.name, data])).toEqual([
      ["settings", { color: "red" }],
      ["copy", { color: "red", by: "me" }],
    ]);
  });

  it("reads and writes whole numbers beyond 2^53 as in the sandbox, where the test gives and finds BigInts", async () => {
    interface Account extends KubeObject {
      spec: { id: number };
    }
    const id = 9007199254740993n;
    const account = { apiVersion: "v1", kind: "Account", metadata: { name: "a" }, spec: { id } };
    const run = await runHandler<Account>(
      async ({ object }, { kube }) => {
        expect(object.spec.id).toBe(9007199254740992);
        expect(wholeNumber(object.spec, "id")).toBe(id);
        const stored = await kube.update<Account>({ ...object, spec: { ...object.spec } });
        await kube.create<Account>({
          ...account,
          metadata: { name: "b" },
          spec: { id: wholeNumber(stored.spec, "id") + 1n },
        });
        await expect(kube.update<Account>({ ...object, spec: { id: Number(id) + 1000 } })).rejects.toThrow(
          "WF_ACCESS_INEXACT_NUMBER: kube.update: object.spec.id",
        );
      },
      { object: account },
    );
    expect(run).toMatchObject({ outcome: "ok", objects: [{ spec: { id } }, { spec: { id: id + 1n } }] });
  });

  it("that throws is told as the runtime would take it", async () => {
    const thrown = (error: unknown) =>
      runHandler(() => Promise.reject(error), { object: settings }).then(({ outcome, retryAfterMs }) => [
        outcome,
        retryAfterMs,
      ]);
    expect(await thrown(new Error("x"))).toEqual(["failed", undefined]);
    expect(await thrown(new PermanentError("x"))).toEqual(["permanent", undefined]);
    expect(await thrown(new RetryAfter("2s"))).toEqual(["failed", 2000]);
  });

  it("meets the errors of a real cluster", async () => {
    const run = await runHandler(
      async (_event, { kube }) => {
        await expect(kube.get({ ...ref, name: "none" })).rejects.toBeInstanceOf(NotFoundError);
        await expect(kube.create(settings)).rejects.toThrow("already exists");
        const stale = await kube.get(ref);
        await kube.patch(ref, { data: { color: null, size: "1" } });
        await expect(kube.update(stale)).rejects.toBeInstanceOf(ConflictError);
        await kube.delete(ref);
        await expect(kube.delete(ref)).rejects.toBeInstanceOf(NotFoundError);
      },
      { object: settings },
    );
    expect(run.error).toBeUndefined();
    expect(run.objects).toEqual([]);
  });

  it("restarts a workload, evicts a pod and writes a subresource, and what it did is told", async () => {
    const spec = { selector: {}, template: { metadata: { annotations: { kept: "yes" } }, spec: { containers: [] } } };
    const web = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "a" }, spec };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web-0", namespace: "a" } };
    const held = { ...pod, metadata: { name: "web-1", namespace: "a", finalizers: ["x/y"] } };
    const refTo = ({ apiVersion, kind, metadata: { name } }: typeof pod) => ({
      apiVersion,
      kind,
      name,
      namespace: "a",
    });
    const handler = defineHandler<V1ConfigMap>(async (_event, { kube }) => {
      await kube.restart(refTo(web));
      await kube.evict(refTo(pod), { gracePeriodSeconds: 5 });
      await kube.evict(refTo(held));
      await kube.subresource(refTo(held), "resize", { spec: { priority: 1 } });
      await expect(kube.evict({ ...refTo(pod), name: "none" })).rejects.toBeInstanceOf(NotFoundError);
      await expect(kube.subresource(refTo(held), "binding", {}, { verb: "create" })).rejects.toThrow(
        "the test harness has no create of binding: give kube.subresource yourself",
      );
    });
    const run = await runHandler(handler, { object: settings }, { objects: [web, pod, held] });
    expect(run.outcome).toBe("ok");
    expect(run.calls.slice(0, 2)).toMatchObject([
      { method: "restart", arguments: [{ name: "web" }] },
      { method: "evict", arguments: [{ name: "web-0" }, { gracePeriodSeconds: 5 }] },
    ]);
    const annotations = { kept: "yes", "kubectl.kubernetes.io/restartedAt": expect.stringMatching(/^\d{4}-.+Z$/) };
    expect(run.objects.find(({ kind }) => kind === "Deployment")).toMatchObject({
      spec: { template: { metadata: { annotations } } },
    });
    expect(run.objects.filter(({ kind }) => kind === "Pod")).toMatchObject([
      { metadata: { name: "web-1", deletionTimestamp: expect.any(String) }, spec: { priority: 1 } },
    ]);
  });

  it("has the kinds of its objects", async () => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n" } };
    const found: unknown[] = [];
    const handler = defineHandler<V1ConfigMap>(async (_event, { kube }) => {
      for (const query of [undefined, { namespace: "a" }])
        found.push((await kube.kinds(query)).map(({ kind, namespaced }) => [kind, namespaced]));
    });
    const run = await runHandler(handler, { object: settings }, { objects: [node] });
    expect(found).toEqual([
      [
        ["Node", false],
        ["ConfigMap", true],
      ],
      [["ConfigMap", true]],
    ]);
    expect(run.calls.map(({ method }) => method)).toEqual(["kinds", "kinds"]);
  });

  it("lists by labels and fields", async () => {
    const objects = ["red", "blue", "green"].map((color) => ({
      ...settings,
      metadata: { name: color, namespace: "a", labels: { color } },
    }));
    const names: unknown[] = [];
    const run = await runHandler(
      async (_event, { kube }) => {
        for (const query of [
          { labelSelector: "color in (red, blue),color!=blue" },
          { labelSelector: "!sync,color notin (red)" },
          { labelSelector: "color", fieldSelector: "metadata.name!=red,metadata.namespace=a" },
          { namespace: "other" },
        ]) {
          const { items } = await kube.list({ apiVersion: "v1", kind: "ConfigMap", ...query });
          names.push(items.map(({ metadata }) => metadata?.name));
        }
      },
      { object: settings, type: "Deleted" },
      { objects },
    );
    expect(run.error).toBeUndefined();
    expect(names).toEqual([["red"], ["blue", "green"], ["blue", "green"], []]);
  });

  it("finds an object of any name by its name", async () => {
    const names = ["Dev Team", "a,b=c", "back\\slash", "grüppe"];
    const objects = names.map((name) => ({ ...settings, metadata: { name, namespace: "a" } }));
    const found: unknown[] = [];
    await runHandler(
      async (_event, { kube }) => {
        for (const name of names) {
          const fieldSelector = `metadata.namespace=a,metadata.name=${name.replace(/[\\,=]/g, "\\$&")}`;
          const { items } = await kube.list({ apiVersion: "v1", kind: "ConfigMap", fieldSelector });
          found.push(...items.map(({ metadata }) => metadata?.name));
        }
      },
      { object: settings, type: "Deleted" },
      { objects },
    );
    expect(found).toEqual(names);
  });

  it("meets the failures that the test gives it", async () => {
    let conflicts = 2;
    const contested = await runHandler(
      (_event, { kube }) => kube.retryOnConflict(ref, (object) => ({ ...object, data: { color: "blue" } })),
      { object: settings },
      {
        kube: {
          update: async (object) => {
            if (conflicts-- > 0) throw new ConflictError("lost the race", { status: 409 });
            return object;
          },
        },
      },
    );
    expect(contested.outcome).toBe("ok");
    expect(contested.calls.map(({ method }) => method)).toEqual([
      "retryOnConflict",
      ...["get", "update", "get", "update", "get", "update"],
    ]);
    const given = await runHandler(
      (_event, { kube }) => kube.get(ref),
      { object: settings },
      {
        kube: { get: () => Promise.reject(new NotFoundError("gone", { status: 404 })) },
      },
    );
    expect(given.error).toBeInstanceOf(NotFoundError);
    expect(given.calls).toEqual([{ method: "get", arguments: [ref] }]);
  });
});

describe("a reconciler in a unit test", () => {
  const reconciler = defineReconciler<V1ConfigMap>(async ({ key, object, causes, attempt, redelivered }, ctx) => {
    ctx.log.info("run", { key, causes, attempt, redelivered });
    if (!object) return;
    if (attempt > 1) throw new RetryAfter("5s");
    await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", ...key }, { data: { seen: object.data?.color ?? "" } });
    return requeueAfter("30s");
  });

  it("runs for an object, and what it did and asked for is told", async () => {
    const run = await runReconciler(reconciler, { object: settings });
    expect(run).toMatchObject({ outcome: "ok", requeueAfterMs: 30_000, objects: [{ data: { seen: "red" } }] });
    expect(run.logs[0]?.fields).toEqual({
      key: { namespace: "a", name: "settings" },
      causes: [{ type: "Modified", trigger: "test", namespace: "a", name: "settings" }],
      attempt: 1,
      redelivered: false,
    });
  });

  it("runs for a key whose object is gone, for other causes, and as a later attempt", async () => {
    const gone = await runReconciler(reconciler, { key: { name: "all" }, causes: [{ type: "Resync" }] });
    expect(gone.logs[0]?.fields).toMatchObject({ key: { name: "all" }, causes: [{ type: "Resync" }] });
    expect([gone.outcome, gone.requeueAfterMs, gone.objects]).toEqual(["ok", undefined, []]);
    const again = await runReconciler(reconciler, { object: settings, attempt: 2 });
    expect(again).toMatchObject({ outcome: "failed", retryAfterMs: 5_000, calls: [] });
  });

  it("says at once which duration is none", () => {
    expect(() => requeueAfter("soon")).toThrow(
      new TypeError('requeueAfter takes milliseconds or text such as "30s", got "soon"'),
    );
  });
});
