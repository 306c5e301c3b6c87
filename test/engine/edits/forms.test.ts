import { describe, expect, it } from "vitest";
import type { Look } from "../../../runtime/engine/delivery/delivery.ts";
import type { Change } from "../../../runtime/informer/scan/change.ts";
import type { Trigger } from "../../../runtime/manifest/function.ts";
import { change, DispatchFixture, failure, manifest, quiet, trigger } from "../fixture.ts";
import { byOwner, owned, withPods } from "../reconcile/fixture.ts";

/** The object in version `v` of its kind. */
const inVersion = (v: string, given: Change): Change => ({
  ...given,
  body: Buffer.from(given.body.toString().replace('"apiVersion":"v1"', `"apiVersion":"${v}"`)),
});

const bodiesTold = ({ runner }: DispatchFixture) =>
  runner.deliveries.map(({ body, oldBody }) => [
    JSON.parse(body.toString()),
    oldBody && JSON.parse(oldBody.toString()),
  ]);

describe("a reconciler whose manifest was edited", () => {
  /** Returns the objects handed to the handler when a child wakes an owner that has not changed since the edit. */
  async function handed(before: Partial<Trigger>, after: Partial<Trigger>, mode: "All" | "Reconcile" = "Reconcile") {
    const looks: string[] = [];
    const look: Look = async (_, __, { name }) => {
      looks.push(name);
      const { meta, body } = inVersion(trigger(after).apiVersion, change("Modified", name, 11, { spec: { size: 3 } }));
      return { ...meta, body };
    };
    const under = (of: Partial<Trigger>, kind: "All" | "Reconcile") =>
      manifest({ mode: kind }, [trigger(of), kind === "All" ? { ...byOwner, key: undefined as never } : byOwner]);
    const first = await withPods(await DispatchFixture.open({ manifest: under(before, mode), look }));
    const shop = inVersion(trigger(before).apiVersion, change("Added", "shop", 11, { spec: { size: 3 } }));
    const { metadata, apiVersion, kind } = JSON.parse(shop.body.toString());
    const asSent =
      before.object === "Metadata" ? Buffer.from(JSON.stringify({ apiVersion, kind, metadata })) : shop.body;
    first.subscription.change({ ...shop, body: asSent });
    await quiet(first.runner);
    await first.clock.advance(10_000);
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: under(after, "Reconcile"), look }), false);
    looks.length = 0;
    second.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    return { objects: bodiesTold(second).map(([object]) => object), looks };
  }

  const whole = { spec: { size: 3 } };

  it.each<[string, Partial<Trigger>, Partial<Trigger>, "All" | "Reconcile"]>([
    ["from `object: Metadata` to Full", { object: "Metadata" }, {}, "Reconcile"],
    ["from mode All with `lastBody: Metadata`", { lastBody: "Metadata" }, { lastBody: "Metadata" }, "All"],
    ["from mode All without a deletion among its events", { events: ["Added", "Modified"] }, {}, "All"],
  ])("%s is handed the whole object, which the API server is asked for", async (_, before, after, mode) => {
    const { objects, looks } = await handed(before, after, mode);
    expect(objects).toMatchObject([whole]);
    expect(looks).toEqual(["shop"]);
  });

  it("to another version of the kind receives the object in that version", async () => {
    const { objects, looks } = await handed({ apiVersion: "v1" }, { apiVersion: "v2" });
    expect(objects).toMatchObject([{ apiVersion: "v2", ...whole }]);
    expect(looks).toEqual(["shop"]);
  });

  it("from Full to `object: Metadata` is handed what that has of the body on record, and nobody is asked", async () => {
    const { objects, looks } = await handed({}, { object: "Metadata" });
    expect(objects.map((object) => Object.keys(object))).toEqual([["apiVersion", "kind", "metadata"]]);
    expect(looks).toEqual([]);
  });

  it("in nothing that its records depend on asks nobody", async () => {
    const { objects, looks } = await handed({}, { changedFields: [["spec"]] });
    expect(objects).toMatchObject([whole]);
    expect(looks).toEqual([]);
  });
});

describe("the previous object after an edit", () => {
  async function told(before: Partial<Trigger>, after: Partial<Trigger>) {
    const under = (of: Partial<Trigger>) => ({ manifest: manifest({}, [trigger(of)]), usesOldObject: true });
    const first = await DispatchFixture.open(under(before));
    await first.listed();
    first.subscription.change(
      inVersion(trigger(before).apiVersion, change("Added", "shop", 11, { spec: { size: 3 } })),
    );
    await quiet(first.runner);
    await first.clock.advance(10_000);
    first.runner.deliveries.length = 0;
    const second = await first.restart(under(after));
    second.subscription.change(
      inVersion(trigger(after).apiVersion, change("Modified", "shop", 12, { spec: { size: 4 } })),
    );
    await quiet(second.runner);
    return bodiesTold(second)[0]?.[1];
  }

  it("is left out where the one on record is metadata alone, and the manifest asks for all of it", async () => {
    expect(await told({ lastBody: "Metadata" }, {})).toBeUndefined();
  });

  it("is left out where the one on record is of another version of the kind", async () => {
    expect(await told({ apiVersion: "v1" }, { apiVersion: "v2" })).toBeUndefined();
  });

  it("is cut to metadata where the manifest asks for no more", async () => {
    expect(Object.keys((await told({}, { lastBody: "Metadata" })) ?? {})).toEqual(["apiVersion", "kind", "metadata"]);
  });

  it("is there as before where the edit does not concern it", async () => {
    expect(await told({}, { events: ["Modified", "Deleted"] })).toMatchObject({ spec: { size: 3 } });
  });
});

describe("an event that waits on disk while its manifest is edited", () => {
  async function told(
    before: Partial<Trigger>,
    after: Partial<Trigger>,
    look?: Look,
    type: "Added" | "Deleted" = "Added",
    isOfOlderRuntime = false,
  ) {
    const under = (of: Partial<Trigger>) => manifest({ onFailure: "Block" }, [trigger(of)]);
    const first = await DispatchFixture.open({ manifest: under(before) });
    await first.listed();
    const shop = inVersion(trigger(before).apiVersion, change("Added", "shop", 11, { spec: { size: 3 } }));
    if (type === "Deleted") first.subscription.change(shop);
    await quiet(first.runner);
    first.runner.answer = () => failure();
    first.subscription.change(type === "Deleted" ? { ...shop, type, meta: { ...shop.meta } } : shop);
    await first.clock.advance(200_000);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => ({ type: "ok", durationMs: 1 });
    if (isOfOlderRuntime)
      for (const [at, event] of first.disk.spill) first.disk.spill.set(at, { ...event, form: undefined });
    const second = await first.restart({ manifest: under(after), ...(look && { look }) });
    await quiet(second.runner);
    await second.clock.advance(2_000);
    return { told: bodiesTold(second).map(([object]) => object), spill: second.disk.spill.size };
  }

  const served: Look = async () => {
    const { meta, body } = inVersion("v2", change("Modified", "shop", 15, { spec: { size: 5 } }));
    return { ...meta, body };
  };

  it("is told with the object as the API server has it in the version that the manifest names now", async () => {
    const found = await told({ apiVersion: "v1" }, { apiVersion: "v2" }, served);
    expect(found).toMatchObject({ told: [{ apiVersion: "v2", spec: { size: 5 } }], spill: 0 });
  });

  it("is told so as well where an older runtime wrote it, which noted no form", async () => {
    const found = await told({ apiVersion: "v1" }, { apiVersion: "v2" }, served, "Added", true);
    expect(found).toMatchObject({ told: [{ apiVersion: "v2", spec: { size: 5 } }], spill: 0 });
    expect(await told({}, { events: ["Added"] }, undefined, "Added", true)).toMatchObject({
      told: [{ spec: { size: 3 } }],
    });
  });

  it("waits while the API server does not answer, and is told once it does", async () => {
    let answers = false;
    const look: Look = (...given) => (answers ? served(...given) : Promise.reject(new Error("away")));
    const found = told({ apiVersion: "v1" }, { apiVersion: "v2" }, (...given) => {
      const asked = look(...given);
      answers = true;
      return asked;
    });
    expect(await found).toMatchObject({ told: [{ apiVersion: "v2" }], spill: 0 });
  });

  it("is not told where the object is gone by now: its deletion follows", async () => {
    const found = await told({ apiVersion: "v1" }, { apiVersion: "v2" }, async () => undefined);
    expect(found).toEqual({ told: [], spill: 0 });
  });

  it("is not told where the trigger selects its object no more", async () => {
    const found = await told({}, { namespaces: { type: "names", names: ["team-b"] } });
    // Only the deletion, because a handler had seen the object.
    expect(found.told.map(({ metadata }) => metadata.name)).toEqual(["shop"]);
  });

  it("is cut to metadata where the manifest asks for no more", async () => {
    const { told: objects } = await told({}, { object: "Metadata" });
    expect(objects.map((object) => Object.keys(object))).toEqual([["apiVersion", "kind", "metadata"]]);
  });
});

describe("an event that is told with its object as it stands, and comes again later", () => {
  it("leaves that state for the state's own event, over a kill in between", async () => {
    const now = inVersion("v2", change("Modified", "shop", 15));
    const after = {
      manifest: manifest({}, [trigger({ apiVersion: "v2" })]),
      look: (async () => ({ ...now.meta, body: now.body })) satisfies Look,
      usesOldObject: true,
    };
    const first = await DispatchFixture.open({
      opened: async ({ dispatcher }) => dispatcher.hold("copy", "command"),
    });
    await first.listed();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(120_000);
    first.runner.answer = () => ({ type: "ok", durationMs: 1, requeueAfterMs: 90_000 });
    const second = await first.restart(after);
    await quiet(second.runner);
    await second.clock.advance(1_000);
    second.runner.answer = () => ({ type: "ok", durationMs: 1 });
    const third = await second.restart(after);
    await third.clock.advance(100_000);
    await quiet(third.runner);
    third.subscription.change(now);
    await quiet(third.runner);
    expect(third.runner.told).toEqual(["Added shop@11", "Added shop@11 !", "Modified shop@15 !"]);
    expect(third.runner.deliveries.at(-1)?.oldBody).toBeUndefined();
  });
});
