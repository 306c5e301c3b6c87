// The SDK's helpers for one object in a controller; test/on-cluster/sdk-objects.test.ts runs the same on a cluster.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Condition, setCondition } from "../../sdk/condition.ts";
import { createOrUpdate } from "../../sdk/create-or-update.ts";
import { AlreadyExistsError, ConflictError, KubeError, NotFoundError } from "../../sdk/errors.ts";
import { ensureFinalizer, removeFinalizer } from "../../sdk/finalizer.ts";
import type { Kube, KubeObject } from "../../sdk/index.ts";
import { controllerOf, ownerReference } from "../../sdk/owner.ts";
import { getOrUndefined, listAll } from "../../sdk/reading.ts";
import { type RunOptions, runHandler } from "../../sdk/testing.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "n" } as const;
const object = (name: string, more: object = {}): KubeObject & { data?: Record<string, string> } => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "n", uid: `uid-of-${name}`, ...more },
});

/** Runs against objects in memory. Returns the result and the run. */
async function on<R>(objects: readonly KubeObject[], work: (kube: Kube) => Promise<R>, kube: RunOptions["kube"] = {}) {
  let result: R | undefined;
  const handler = async (_event: unknown, ctx: { kube: Kube }) => {
    result = await work(ctx.kube);
  };
  const run = await runHandler(handler, { object: {} }, { objects, kube });
  if (run.error) throw run.error;
  return { result: result as R, run };
}

describe("setCondition", () => {
  const types = fc.constantFrom("Ready", "Healthy", "Degraded");
  const fresh = fc.record({
    type: types,
    status: fc.constantFrom("True", "False", "Unknown" as const),
    reason: fc.constantFrom("A", "B"),
    message: fc.constantFrom("", "m"),
    observedGeneration: fc.option(fc.nat(3), { nil: undefined }),
  });
  const at = (no: number) => new Date(1_700_000_000_000 + no * 1500);
  const stamp = (no: number) => new Date(Math.floor(at(no).getTime() / 1000) * 1000).toISOString().replace(".000", "");

  it("keeps one condition of a type, whose time is that of the last change of its status", () => {
    fc.assert(
      fc.property(fc.array(fresh, { maxLength: 12 }), (all) => {
        let conditions: readonly Condition[] | undefined;
        for (const [no, each] of all.entries()) conditions = setCondition(conditions, each, at(no));
        for (const type of new Set(all.map((each) => each.type))) {
          const history = all.flatMap((each, no) => (each.type === type ? [{ no, ...each }] : []));
          const last = history.at(-1);
          const turned = history.findLast(({ status }, index) => status !== history[index - 1]?.status);
          const { no: _, ...said } = { no: 0, ...last };
          expect(conditions?.filter((each) => each.type === type)).toEqual([
            { ...said, lastTransitionTime: stamp(turned?.no ?? 0) },
          ]);
        }
      }),
    );
  });

  it("gives the same array back where nothing changes, so that nothing need be written", () => {
    const ready = { type: "Ready", status: "True", reason: "A", message: "", observedGeneration: 2 } as const;
    const conditions = setCondition(undefined, ready, at(0));
    expect(setCondition(conditions, ready, at(9))).toBe(conditions);
    expect(setCondition(conditions, { ...ready, observedGeneration: 3 }, at(9))).not.toBe(conditions);
  });
});

describe("ownerReference", () => {
  it("names the owner as the one that manages the object, unless told otherwise", () => {
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "uid-of-a" };
    expect(ownerReference(object("a"))).toEqual({ ...owner, controller: true });
    expect(ownerReference(object("a"), { controller: false })).toEqual(owner);
    expect(controllerOf(object("b", { ownerReferences: [owner, { ...owner, controller: true }] }))).toEqual({
      ...owner,
      controller: true,
    });
  });

  it("says which of the four an owner lacks", () => {
    expect(() => ownerReference({ apiVersion: "v1", metadata: { name: "a" } })).toThrow(/kind, metadata\.uid/);
  });
});

describe("getOrUndefined", () => {
  it("gives the object, or undefined where there is none", async () => {
    const { result } = await on([object("a")], async (kube) => [
      (await getOrUndefined(kube, ref))?.metadata.name,
      await getOrUndefined(kube, { ...ref, name: "none" }),
    ]);
    expect(result).toEqual(["a", undefined]);
  });

  it("throws every other failure, a kind that is not served among them", async () => {
    for (const error of [
      new KubeError("x", { status: 500 }),
      new NotFoundError("no kind", { status: 404, reason: "NotServed" }),
    ]) {
      const get = () => Promise.reject(error);
      await expect(on([], (kube) => getOrUndefined(kube, ref), { get })).rejects.toBe(error);
    }
  });
});

describe("listAll", () => {
  const query = { apiVersion: "v1", kind: "ConfigMap", namespace: "n", labelSelector: "a=b" };
  const names = ["a", "b", "c", "d", "e"];
  /** A list in pages of two, one of which may have expired. */
  const paged = (expiredAt?: string): NonNullable<RunOptions["kube"]>["list"] => {
    return async ({ limit, continue: from = "0", labelSelector }) => {
      expect(labelSelector).toBe("a=b");
      if (from === expiredAt) throw new KubeError("too old", { status: 410, reason: "Expired" });
      const start = Number(from);
      const end = limit === undefined ? names.length : start + 2;
      const items = names.slice(start, end).map((name) => object(name) as Record<string, unknown>);
      return { items, metadata: end < names.length ? { continue: String(end) } : {} };
    };
  };

  it("gives the objects of all pages, each once", async () => {
    const { result } = await on([], (kube) => listAll(kube, query), { list: paged() });
    expect(result.map(({ metadata }) => metadata.name)).toEqual(names);
  });

  it("asks for the whole list where it expires between two pages", async () => {
    const { result } = await on([], (kube) => listAll(kube, query), { list: paged("2") });
    expect(result.map(({ metadata }) => metadata.name)).toEqual(names);
    await expect(on([], (kube) => listAll(kube, query), { list: paged("0") })).rejects.toMatchObject({ status: 410 });
  });
});

describe("a finalizer", () => {
  const [ours, theirs] = ["example.com/ours", "example.com/theirs"];

  it("is put on an object once, and holds its delete up until it is taken off", async () => {
    const { result, run } = await on([object("a")], async (kube) => {
      const held = await ensureFinalizer(kube, await kube.get(ref), ours);
      const again = await ensureFinalizer(kube, held, ours);
      await kube.delete(ref);
      const deleted = await kube.get(ref);
      const unchanged = await ensureFinalizer(kube, deleted, theirs);
      await removeFinalizer(kube, unchanged, ours);
      const gone = await getOrUndefined(kube, ref);
      return { held: held.metadata.finalizers, isSame: again === held, isOld: unchanged === deleted, gone };
    });
    expect(result).toEqual({ held: [ours], isSame: true, isOld: true, gone: undefined });
    expect(run.calls.filter(({ method }) => method === "patch")).toHaveLength(2);
  });

  it("leaves those of others in place, also where they come at the same time", async () => {
    const { result } = await on([object("a")], async (kube) => {
      const stale = await kube.get(ref);
      await ensureFinalizer(kube, stale, theirs);
      const both = await ensureFinalizer(kube, stale, ours);
      await kube.patch(ref, { data: { x: "1" } });
      return [both.metadata.finalizers, (await removeFinalizer(kube, both, theirs))?.metadata.finalizers];
    });
    expect(result).toEqual([[theirs, ours], [ours]]);
  });

  it("gives up after five conflicts", async () => {
    let writes = 0;
    const patch = async () => {
      writes++;
      throw new ConflictError("changed", { status: 409 });
    };
    const work = async (kube: Kube) => ensureFinalizer(kube, await kube.get(ref), ours);
    await expect(on([object("a")], work, { patch })).rejects.toBeInstanceOf(ConflictError);
    expect(writes).toBe(5);
  });

  it("is not looked for on another object of the same name", async () => {
    const { result, run } = await on([object("a", { finalizers: [ours] })], async (kube) => {
      const before = { ...(await kube.get(ref)), metadata: { ...(await kube.get(ref)).metadata, uid: "older" } };
      const removed = await removeFinalizer(kube, before, ours);
      await expect(ensureFinalizer(kube, before, theirs)).rejects.toBeInstanceOf(NotFoundError);
      return removed;
    });
    expect(result).toBeUndefined();
    expect(run.objects[0]?.metadata?.finalizers).toEqual([ours]);
  });
});

describe("createOrUpdate", () => {
  const wanted = (data: Record<string, string>, owner?: KubeObject) => ({
    apiVersion: "v1" as const,
    kind: "ConfigMap" as const,
    metadata: { name: "a", namespace: "n", ...(owner && { ownerReferences: [ownerReference(owner)] }) },
    data,
  });

  it("says whether it created, changed or found the object as it should be", async () => {
    const { result } = await on([], async (kube) => {
      const changes = [];
      for (const data of [{ x: "1" }, { x: "1" }, { x: "2" }]) changes.push(await createOrUpdate(kube, wanted(data)));
      return changes.map(({ change, object }) => [change, object.data?.x]);
    });
    expect(result).toEqual([
      ["created", "1"],
      ["unchanged", "1"],
      ["updated", "2"],
    ]);
  });

  it("with the cache reads no object that is there, and lets the runtime skip an apply that changes nothing", async () => {
    const cache = { get: () => ({ ...object("a"), metadata: { ...object("a").metadata, resourceVersion: "1" } }) };
    const { run } = await on([object("a")], (kube) => createOrUpdate(kube, wanted({ x: "1" }), cache));
    expect(run.calls.map(({ method, arguments: [, options] }) => [method, options])).toEqual([
      ["apply", { force: true, skipUnchanged: true }],
    ]);
  });

  it("asks the API server for an object that the cache does not have: the read may leave it out", async () => {
    const other = object("a", { ownerReferences: [ownerReference(object("other"))] });
    const work = (kube: Kube) => createOrUpdate(kube, wanted({ x: "1" }, object("one")), { get: () => undefined });
    await expect(on([other], work)).rejects.toBeInstanceOf(AlreadyExistsError);
  });

  it("takes no object from another controller, nor one that has none, and writes nothing then", async () => {
    const [one, other] = [object("one"), object("other")];
    for (const found of [object("a"), object("a", { ownerReferences: [ownerReference(other)] })]) {
      const work = (kube: Kube) => createOrUpdate(kube, wanted({ x: "1" }, one));
      await expect(on([found], work)).rejects.toBeInstanceOf(AlreadyExistsError);
    }
    const mine = object("a", { ownerReferences: [ownerReference(one)] });
    const { result } = await on([mine], (kube) => createOrUpdate(kube, wanted({ x: "1" }, one)));
    expect(result.change).toBe("updated");
  });
});
