import { expect, test } from "vitest";
import handler from "../../functions/myapp/handler.ts";
import { NotFoundError } from "../../sdk/errors.ts";
import type { KubeObject } from "../../sdk/object.ts";
import { type RunOptions, runReconciler } from "../../sdk/testing.ts";

const finalizer = "my.domain/config-map";
const key = { namespace: "default", name: "shop" };
/** Has the finalizer by default. */
const myApp = (metadata: object = {}) => ({
  apiVersion: "my.domain/v1",
  kind: "MyApp",
  metadata: { ...key, uid: "uid-shop", generation: 1, finalizers: [finalizer], ...metadata },
  spec: { appName: "shop", version: "1.0", replicas: 2 },
});
const owner = { apiVersion: "my.domain/v1", kind: "MyApp", name: "shop", uid: "uid-shop", controller: true };
const configMap = (ownerReferences?: object[]) =>
  ({ apiVersion: "v1", kind: "ConfigMap", metadata: { ...key, ownerReferences }, data: { mine: "yes" } }) as KubeObject;

const reconcile = (object: ReturnType<typeof myApp>, options: RunOptions = {}) =>
  runReconciler(handler, { object }, options);
const writes = (run: Awaited<ReturnType<typeof reconcile>>) =>
  run.calls.map(({ method }) => method).filter((method) => method !== "get");

test("a new MyApp gets its finalizer before anything is made for it", async () => {
  const run = await reconcile(myApp({ finalizers: undefined }));
  expect(run.outcome).toBe("ok");
  expect(writes(run)).toEqual(["patch", "apply", "patchStatus"]);
  const [app, config] = run.objects;
  expect(app).toMatchObject({ metadata: { finalizers: [finalizer] }, status: { observedGeneration: 1, replicas: 2 } });
  expect(config).toMatchObject({
    metadata: { ownerReferences: [owner] },
    data: { appName: "shop", version: "1.0", replicas: "2" },
  });
});

test("one whose status says so already is not written again", async () => {
  const first = await reconcile(myApp());
  const [app] = first.objects;
  const again = await runReconciler(handler, { object: app as never }, { objects: first.objects });
  expect(writes(again)).toEqual(["apply"]);
  expect(again.requeueAfterMs).toBeUndefined();
});

test("a name that is taken is told once, and looked at again without a failure", async () => {
  const run = await reconcile(myApp(), { objects: [configMap()] });
  expect(run).toMatchObject({ outcome: "ok", requeueAfterMs: 10_000, events: [{ reason: "NameTaken" }] });
  const [config, app] = run.objects;
  expect(config).toMatchObject({ data: { mine: "yes" } });
  const again = await runReconciler(handler, { object: app as never }, { objects: run.objects });
  expect(again).toMatchObject({ outcome: "ok", requeueAfterMs: 10_000, events: [] });
});

test.each([
  ["its own", [owner], 0],
  ["no one's", undefined, 1],
  ["another's", [{ ...owner, uid: "uid-other" }], 1],
  ["one that it does not control", [{ ...owner, controller: false }], 1],
])("of a MyApp that is being deleted, a ConfigMap that is %s", async (_, owners, left) => {
  const run = await reconcile(myApp({ deletionTimestamp: "2026-11-02T09:31:00Z" }), { objects: [configMap(owners)] });
  expect(run.outcome).toBe("ok");
  expect(run.objects.map(({ kind }) => kind)).toEqual(left ? ["ConfigMap"] : []);
});

test("a MyApp stays until its ConfigMap is deleted", async () => {
  const refused = { delete: async () => Promise.reject(new Error("no")) };
  const options = { objects: [configMap([owner])], kube: refused };
  const run = await reconcile(myApp({ deletionTimestamp: "2026-11-02T09:31:00Z" }), options);
  expect(run.outcome).toBe("failed");
  expect(run.objects.find(({ kind }) => kind === "MyApp")?.metadata?.finalizers).toEqual([finalizer]);
});

test("one that is gone while it runs is looked at again, and one that is gone needs nothing", async () => {
  const gone = { patch: async () => Promise.reject(new NotFoundError("gone", { status: 404 })) };
  const run = await reconcile(myApp({ finalizers: undefined }), { kube: gone });
  expect(run).toMatchObject({ outcome: "ok", requeueAfterMs: 1000 });
  expect(writes(run)).toEqual(["patch"]);
  expect(await runReconciler(handler, { key })).toMatchObject({ outcome: "ok", calls: [] });
});
