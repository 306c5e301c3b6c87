import { expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import {
  type ApiVersion,
  type Context,
  defineBatchHandler,
  defineHandler,
  type KindIn,
  type Kube,
  type Scheduled,
  type Stored,
  type Triggers,
  type UnknownObject,
} from "../../sdk/index.ts";
import type { V1ConfigMap, V1Deployment, V1Pod } from "../../sdk/kubernetes.ts";
import { runBatch, runHandler } from "../../sdk/testing.ts";

interface Shop {
  apiVersion: "shop.example/v1";
  kind: "Shop";
  metadata?: { name?: string };
  spec: { size: number };
}

declare module "@watchfire/sdk" {
  interface Kinds {
    "shop.example/v1/Shop": Shop;
  }
}

/** Never called: only the compiler checks it. */
const calls = async (kube: Kube, ctx: Context): Promise<void> => {
  const ref = { name: "web", namespace: "shop" } as const;

  expectTypeOf(await kube.get({ apiVersion: "apps/v1", kind: "Deployment", ...ref })).toEqualTypeOf<
    Stored<V1Deployment>
  >();
  expectTypeOf(await kube.get({ apiVersion: "shop.example/v1", kind: "Shop", ...ref })).toEqualTypeOf<Stored<Shop>>();
  expectTypeOf(await kube.get({ apiVersion: "other.example/v1", kind: "Other", ...ref })).toEqualTypeOf<
    Stored<UnknownObject>
  >();
  expectTypeOf(await kube.get<V1Pod>({ apiVersion: "v1", kind: "Pod", ...ref })).toEqualTypeOf<Stored<V1Pod>>();
  const { items } = await kube.list({ apiVersion: "v1", kind: "ConfigMap" });
  expectTypeOf(items).toEqualTypeOf<Stored<V1ConfigMap>[]>();
  expectTypeOf(items[0]?.metadata.resourceVersion).toEqualTypeOf<string | undefined>();

  const created = await kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { a: "1" } });
  expectTypeOf(created).toEqualTypeOf<Stored<V1ConfigMap>>();
  await kube.create({ apiVersion: "shop.example/v1", kind: "Shop", metadata: { name: "a" }, spec: { size: 5n } });
  await kube.update<Shop>({ apiVersion: "shop.example/v1", kind: "Shop", metadata: { name: "a" }, spec: { size: 5n } });
  await kube.retryOnConflict({ apiVersion: "shop.example/v1", kind: "Shop", ...ref }, (shop) => ({
    ...shop,
    spec: { size: BigInt(shop.spec.size) },
  }));
  // @ts-expect-error a name is not a whole number
  await kube.create({ apiVersion: "shop.example/v1", kind: "Shop", metadata: { name: 5n }, spec: { size: 5 } });
  // @ts-expect-error a ConfigMap has no field of this name
  await kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, dta: {} });
  // @ts-expect-error its data are texts
  await kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { a: 1 } });
  // @ts-expect-error a Shop has a spec
  await kube.apply({ apiVersion: "shop.example/v1", kind: "Shop", metadata: { name: "a" } }, { force: true });
  await kube.create({ apiVersion: "other.example/v1", kind: "Other", metadata: { name: "a" }, anything: 1 });
  expectTypeOf(await kube.update(created)).toEqualTypeOf<Stored<V1ConfigMap>>();
  await kube.create<UnknownObject>({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, dta: {} });

  await kube.retryOnConflict({ apiVersion: "apps/v1", kind: "Deployment", ...ref }, (deployment) => {
    expectTypeOf(deployment.spec?.replicas).toEqualTypeOf<number | undefined>();
  });
  await ctx.events.emit(created, { type: "Normal", reason: "Kept", message: "it is as it should be" });
};

const several = defineHandler<Triggers<{ settings: V1ConfigMap; pods: V1Pod }>>((event) => {
  if (event.trigger === "pods") expectTypeOf(event.object).toEqualTypeOf<Stored<V1Pod>>();
  else expectTypeOf(event.object).toEqualTypeOf<Stored<V1ConfigMap>>();
  expectTypeOf(event.reason).toEqualTypeOf<
    "relist" | "selected" | "unselected" | "rv-rewind" | "crd-removed" | "edited" | "backlog" | undefined
  >();
  return event.object.metadata.name;
});

const timed = defineHandler<Triggers<{ nightly: Scheduled; pods: V1Pod }>>((event) => {
  if (event.type === "Scheduled") {
    expectTypeOf(event.trigger).toEqualTypeOf<"nightly">();
    expectTypeOf(event.scheduledFor).toEqualTypeOf<string>();
    // @ts-expect-error a time has no object
    return event.object.metadata;
  }
  return event.object.metadata;
});

const one = defineHandler<V1Deployment>(async ({ object }, { kube }) => {
  const got = await kube.get({ apiVersion: "apps/v1", kind: "Deployment", name: "web" });
  const { items } = await kube.list({ apiVersion: "apps/v1", kind: "Deployment" });
  const made = await kube.create({ ...object, metadata: { name: "copy" } });
  // One type with metadata, in whichever way the object was read.
  expectTypeOf(got).toEqualTypeOf(object);
  expectTypeOf(items).toEqualTypeOf([object]);
  expectTypeOf(made).toEqualTypeOf(object);
  expectTypeOf(object.metadata.name).toEqualTypeOf<string>();
});

it("a handler's own object, and what get, list and create give, are of one type", () => {
  expectTypeOf(one).toBeFunction();
});

it("an editor has the apiVersions and kinds to complete, those of one's own among them", () => {
  expectTypeOf<"v1" | "apps/v1" | "shop.example/v1">().toExtend<ApiVersion>();
  expectTypeOf<"v2">().not.toExtend<ApiVersion>();
  expectTypeOf<KindIn<"apps/v1">>().toEqualTypeOf<
    "ControllerRevision" | "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet"
  >();
  expectTypeOf<KindIn<"shop.example/v1">>().toEqualTypeOf<"Shop">();
});

it("the client's types follow from apiVersion and kind", () => {
  expectTypeOf(calls).toBeFunction();
});

it("a handler is run in a test with a time of its schedule, which is the present where none is given", async () => {
  vi.useFakeTimers({ now: Date.parse("2026-03-29T01:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const seen: unknown[] = [];
  const handler = defineHandler<Scheduled>(({ type, scheduledFor, missed }) =>
    seen.push({ type, scheduledFor, missed }),
  );
  await runHandler(handler, { type: "Scheduled" });
  await runHandler(handler, { type: "Scheduled", scheduledFor: "2026-03-30T01:00:00.000Z", missed: true });
  expect(seen).toEqual([
    { type: "Scheduled", scheduledFor: "2026-03-29T01:00:00.000Z", missed: undefined },
    { type: "Scheduled", scheduledFor: "2026-03-30T01:00:00.000Z", missed: true },
  ]);
  expectTypeOf(timed).toBeFunction();
});

it("a handler of batches is run in a test with several events, and tells which of them failed", async () => {
  const object = (name: string): V1ConfigMap => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
  const handler = defineBatchHandler<V1ConfigMap>(async (events, { kube }) => {
    expectTypeOf(events[0]?.object).toEqualTypeOf<Stored<V1ConfigMap> | undefined>();
    for (const { object } of events) {
      const ref = { apiVersion: "v1", kind: "ConfigMap", name: object.metadata.name } as const;
      await kube.patch(ref, { data: { seen: "yes" } });
    }
    return { failed: events.filter((event) => event.object.metadata.name === "b").map(({ id }) => id) };
  });
  const run = await runBatch(handler, [{ object: object("a") }, { id: "mine", object: object("b") }]);
  expect(run).toMatchObject({ outcome: "ok", failed: ["mine"] });
  expect(run.objects).toMatchObject([{ data: { seen: "yes" } }, { data: { seen: "yes" } }]);
  const unknown = await runBatch(() => ({ failed: ["z"] }), [{ object: object("a") }]);
  expect(unknown).toMatchObject({ outcome: "failed", failed: ["test-0"] });
  const thrown = await runBatch(() => Promise.reject(new Error("no")), [{ object: object("a") }]);
  expect(thrown).toMatchObject({ outcome: "failed", failed: ["test-0"] });
});

it("a handler of several triggers is run in a test with the event of one of them", async () => {
  const object: V1ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };
  const { outcome } = await runHandler(several, { trigger: "settings", object });
  expect(outcome).toBe("ok");
});
