import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { editsOnRecord } from "../../../runtime/engine/trigger-views.ts";
import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { DeadLetters } from "../../../runtime/journal/dead-letters.ts";
import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import { change, DispatchFixture, failure, manifest, quiet, trigger } from "../fixture.ts";
import { byLabel, byOwner, open, owned, reconciler, runs, withPods } from "../reconcile/fixture.ts";

/** Ends the process, and loads the function with another manifest on the same disk. */
async function restarted(it: DispatchFixture, to: FunctionManifest) {
  it.kill();
  await quiet(it.runner);
  it.runner.forget();
  const { Dispatcher } = await import("../../../runtime/engine/dispatcher.ts");
  const { MemoryStore } = await import("../../journal/memory-store.ts");
  const { disk, clock, runner } = it;
  const edits: unknown[] = [];
  const info = (fields: object) => ("edits" in fields ? edits.push(fields.edits) : undefined);
  const log = { info, warn() {}, error() {} };
  const store = new MemoryStore(disk);
  const dispatcher = await Dispatcher.open({ store, runner, clock, random: () => 0, observer: {}, log, onLost() {} });
  const loaded = await dispatcher.function(to, { usesOldObject: false });
  const source = (name: string, selection = "all") => loaded.subscription(name, { selection, namespace: "" });
  return { dispatcher, source, store, edits };
}

const named = (name: string, over: Partial<Trigger> = {}) => manifest({}, [trigger({ name, ...over })]);

describe("event ids", () => {
  it("of two triggers of one function differ for one change of one object", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({}, [trigger(), trigger({ name: "again" })]) });
    await it.listed();
    const again = it.function.subscription("again", { selection: "all", namespace: "" });
    again.list("initial", undefined).end(resourceVersion("1"));
    await quiet(it.runner);
    it.subscription.change(change("Added", "shop", 11));
    again.change(change("Added", "shop", 11));
    await quiet(it.runner);
    expect(it.runner.deliveries.map(({ id }) => id)).toEqual(["settings:uid-shop/11/Added", "again:uid-shop/11/Added"]);
  });

  it("are used once, wherever a scope goes from chosen namespaces to all and back, with selectors edited in between", async () => {
    const inTeam = { namespaces: { type: "names", names: ["team-a"] } } as const;
    const under = (over: Partial<Trigger>) => ({
      manifest: manifest({}, [trigger(over)]),
      selection: over.labelSelector ?? "",
      namespace: over.namespaces ? "team-a" : "",
    });
    const shop = change("Added", "shop", 13);
    let it = await DispatchFixture.open(under({ ...inTeam, labelSelector: "x=1" }));
    await it.list(14, [], "initial");
    const steps: [Partial<Trigger>, boolean][] = [
      [{ ...inTeam, labelSelector: "y=1" }, true],
      [{ ...inTeam, labelSelector: "x=1" }, false],
      [{}, true],
      [{ labelSelector: "x=1" }, false],
      [{ ...inTeam, labelSelector: "y=1" }, true],
    ];
    for (const [index, [over, isListed]] of steps.entries()) {
      await it.clock.advance(10_000);
      it = await it.restart(under(over));
      await it.list(15 + index, isListed ? [shop] : [], "initial");
      await quiet(it.runner);
    }
    const ids = it.runner.deliveries.map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([5, 5]);
    expect(it.runner.deliveries.map(({ type }) => type)).toEqual(["Added", "Deleted", "Added", "Deleted", "Added"]);
  });
});

describe("a trigger that is renamed", () => {
  it("continues as the same trigger: nothing is delivered again, and its ids continue, there and back", async () => {
    const first = await (await DispatchFixture.open()).listed();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await restarted(first, named("renamed"));
    const source = second.source("renamed");
    expect(source.resumeFrom).toBe("1");
    source.change(change("Added", "shop", 11));
    source.change(change("Modified", "shop", 12));
    await quiet(first.runner);
    second.dispatcher.halt();
    const third = await restarted(first, named("settings"));
    third.source("settings").change(change("Modified", "shop", 13));
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ trigger: of, id }) => `${of} ${id}`)).toEqual([
      "settings settings:uid-shop/11/Added",
      "renamed settings:uid-shop/12/Modified",
      "settings settings:uid-shop/13/Modified",
    ]);
  });

  it.each([
    ["", async (_: Checkpoint) => {}],
    // The process was killed there: the view is in the store, and nothing else is recorded of it.
    [
      ", though the process dies while the view of that one is made",
      (store: Checkpoint) => store.openView("copy", "settings", "/ConfigMap"),
    ],
  ])("and one that takes its name afterwards have ids of their own%s", async (_, between) => {
    const first = await (await DispatchFixture.open()).listed();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await restarted(first, named("renamed"));
    second.dispatcher.halt();
    await between(second.store);
    const both = manifest({}, [trigger({ name: "renamed" }), trigger({ labelSelector: "x=1" })]);
    const third = await restarted(first, both);
    const receiver = third.source("settings", "x=1").list("initial", undefined);
    receiver.item(change("Added", "shop", 11));
    receiver.end(resourceVersion("20"));
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ id }) => id)).toEqual([
      "settings:uid-shop/11/Added",
      "settings.2:uid-shop/11/Added",
    ]);
  });

  it("has what waits on disk told under its new name, and takes its dead letters back", async () => {
    const policy = { retry: { ...manifest().delivery.retry, maxAttempts: 1 } };
    const first = await (await DispatchFixture.open({ manifest: manifest(policy) })).listed();
    first.runner.answer = ({ object }) => (object.name === "bad" ? failure() : undefined);
    first.subscription.change(change("Added", "bad", 11));
    first.subscription.change(change("Added", "slow", 12));
    await quiet(first.runner);
    await first.clock.advance(120_000);
    first.runner.answer = () => ({ type: "ok", durationMs: 1 });
    first.runner.deliveries.length = 0;
    const second = await restarted(first, manifest(policy, [trigger({ name: "renamed" })]));
    second.source("renamed");
    await quiet(first.runner);
    await new DeadLetters(second.store, second.dispatcher).replay(["1"]);
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ trigger: of, object }) => `${of} ${object.name}`)).toEqual([
      "renamed slow",
      "renamed bad",
    ]);
  });

  it("is another one where a trigger of its name goes on beside it", async () => {
    const first = await (await DispatchFixture.open()).listed();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await restarted(first, manifest({}, [trigger({ labelSelector: "x=1" }), trigger({ name: "all" })]));
    expect([second.source("all").resumeFrom, second.source("settings", "x=1").resumeFrom]).toEqual([
      undefined,
      undefined,
    ]);
    const receiver = second.source("settings", "x=1").list("initial", undefined);
    receiver.end(resourceVersion("20"));
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ id, flags }) => [id, flags.reason])).toEqual([
      ["settings:uid-shop/11/Added", undefined],
      ["settings:uid-shop/11~/Deleted@1", "unselected"],
    ]);
  });

  it("has its place taken where two change names with each other, and neither tells anything", async () => {
    const two = (a: string, b: string) =>
      manifest({}, [trigger({ name: a }), trigger({ name: b, labelSelector: "x=1" })]);
    const first = await DispatchFixture.open({ manifest: two("settings", "labelled") });
    await first.listed();
    const labelled = first.function.subscription("labelled", { selection: "x=1", namespace: "" });
    labelled.list("initial", undefined).end(resourceVersion("1"));
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await restarted(first, two("labelled", "settings"));
    expect([second.source("labelled").resumeFrom, second.source("settings", "x=1").resumeFrom]).toEqual(["1", "1"]);
    second.source("labelled").change(change("Modified", "shop", 12));
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ id }) => id)).toEqual([
      "settings:uid-shop/11/Added",
      "settings:uid-shop/12/Modified",
    ]);
  });

  it("has the key run that waits, also of an object that is gone", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.answer = () => failure();
    first.subscription.change(change("Deleted", "shop", 12));
    await quiet(first.runner);
    await first.clock.advance(100);
    first.runner.answer = () => ({ type: "ok", durationMs: 1 });
    first.runner.deliveries.length = 0;
    const second = await restarted(first, manifest({ mode: "Reconcile" }, [trigger({ name: "shops" }), byOwner]));
    for (const name of ["shops", "pods"]) second.source(name).bookmark(resourceVersion("20"));
    await quiet(first.runner);
    await first.clock.advance(600_000);
    expect(runs(first)).toEqual(["shop@gone <- Deleted shops shop #2 !"]);
  });

  it.each([
    ["in an edit before", true],
    ["in the same edit", false],
  ])("%s has what woke a key told as its own event, once the function takes events again", async (_, isBefore) => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.answer = () => failure();
    first.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(first.runner);
    await first.clock.advance(100);
    const children = { ...byOwner, name: "children" };
    if (isBefore) (await restarted(first, reconciler({}, children))).dispatcher.halt();
    first.runner.answer = () => ({ type: "ok", durationMs: 1 });
    first.runner.deliveries.length = 0;
    await restarted(first, manifest({}, [trigger(), { ...children, key: undefined as never, object: "Metadata" }]));
    await first.clock.advance(1_000);
    await quiet(first.runner);
    expect(first.runner.deliveries.map(({ trigger: of, id }) => `${of} ${id}`)).toEqual([
      "children pods:uid-web/12/Added",
    ]);
  });
});

describe("a `key` that is edited", () => {
  /** A Pod that is owned by one shop and names another. */
  const child = (type: "Added" | "Modified" | "Deleted", rv: number, owner: string, of: string) => {
    const made = owned(type, "web", rv, owner);
    const object = { ...JSON.parse(made.body.toString()), spec: { of } };
    return { ...made, body: Buffer.from(JSON.stringify(object)) };
  };

  async function edited(before: typeof byOwner, after: typeof byOwner) {
    const first = await open({ manifest: reconciler({}, before) });
    for (const [index, name] of ["shop", "other", "third"].entries())
      first.subscription.change(change("Added", name, 11 + index));
    first.pods.change(child("Added", 14, "shop", "shop"));
    await first.clock.advance(10_000);
    await quiet(first.runner);
    first.runner.deliveries.length = 0;
    return withPods(await first.restart({ manifest: reconciler({}, after) }), false);
  }

  const wakes = (it: DispatchFixture) => [...new Set(it.runner.deliveries.map(({ object }) => object.name))].sort();

  it.each<[string, typeof byOwner, typeof byOwner]>([
    ["from owners to an expression", byOwner, byLabel],
    ["from an expression to owners", byLabel, byOwner],
  ])("%s: a child that goes in the gap wakes the keys of both rules", async (_, before, after) => {
    const it = await edited(before, after);
    it.pods.list("relist", undefined).end(resourceVersion("20"));
    await quiet(it.runner);
    await it.clock.advance(2_000);
    expect(wakes(it)).toContain("shop");
  });

  it.each<[string, typeof byOwner, typeof byOwner]>([
    ["from owners to an expression", byOwner, byLabel],
    ["from an expression to owners", byLabel, byOwner],
  ])("%s: a child that moves wakes the key that it left, and the one that it goes to", async (_, before, after) => {
    const it = await edited(before, after);
    it.pods.change(child("Modified", 15, "other", "other"));
    await quiet(it.runner);
    await it.clock.advance(2_000);
    expect(wakes(it)).toEqual(expect.arrayContaining(["other", "shop"]));
  });

  it("wakes no other key once the child's state was seen under it", async () => {
    const it = await edited(byOwner, byLabel);
    it.pods.change(child("Modified", 15, "shop", "shop"));
    await quiet(it.runner);
    await it.clock.advance(2_000);
    it.runner.deliveries.length = 0;
    it.pods.change(child("Modified", 16, "shop", "other"));
    await quiet(it.runner);
    await it.clock.advance(2_000);
    expect(wakes(it)).toEqual(["other", "shop"]);
  });
});

describe("conditions that are edited", () => {
  const big = { name: "big", expression: "object.spec.size > 2" };
  const small = { name: "small", expression: "object.spec.size < 2" };

  /** Returns the deliveries after a list lacks an object whose last state the earlier conditions had suppressed. */
  async function gone(after: Partial<Trigger>, before: Partial<Trigger> = {}) {
    const under = (over: Partial<Trigger>) => manifest({}, [trigger(over)]);
    const first = await DispatchFixture.open({ manifest: under({ matchConditions: [big], ...before }) });
    await first.listed();
    first.subscription.change(change("Added", "shop", 11, { spec: { size: 3 } }));
    await quiet(first.runner);
    first.subscription.change(change("Modified", "shop", 12, { spec: { size: 1 } }));
    await quiet(first.runner);
    await first.clock.advance(10_000);
    const second = await first.restart({ manifest: under(after) });
    await second.list(20, []);
    await quiet(second.runner);
    return second.runner.told.slice(1);
  }

  it("hold no deletion back by the answer of those that are no more", async () => {
    expect(await gone({})).toEqual(["Deleted shop@12"]);
  });

  it("judge the last body anew where it is whole", async () => {
    expect(await gone({ matchConditions: [small] })).toEqual(["Deleted shop@12"]);
    expect(await gone({ matchConditions: [{ ...big, name: "bigger" }] })).toEqual([]);
  });

  it("tell a deletion of which the last body says too little", async () => {
    const kept = { lastBody: "Metadata" } as const;
    expect(await gone({ matchConditions: [small], ...kept }, kept)).toEqual(["Deleted shop@12"]);
  });

  it("still answer for a deletion where they are as they were", async () => {
    const kept = { lastBody: "Metadata" } as const;
    expect(await gone({ matchConditions: [big], ...kept }, kept)).toEqual([]);
  });
});

describe("the log says once, when the function is loaded, what the edit of its manifest does", () => {
  /** A reconciler with two waiting keys, of which a Pod woke one. */
  async function waiting() {
    const first = await open();
    first.runner.answer = () => failure();
    first.pods.change(owned("Added", "pod", 11, "shop"));
    first.subscription.change(change("Added", "till", 12));
    await quiet(first.runner);
    await first.clock.advance(100);
    return first;
  }

  it("to what waits for each trigger", async () => {
    const first = await waiting();
    const second = await restarted(first, reconciler({}, byLabel));
    expect(second.edits).toEqual([[expect.stringContaining("trigger pods: key changed: 1 waiting key runs")]]);
    second.dispatcher.halt();
    const third = await restarted(first, reconciler({}, byLabel));
    expect(third.edits).toEqual([]);
  });

  it("to keys of a reconciler, which are no events", async () => {
    const { edits } = await restarted(
      await waiting(),
      manifest({ mode: "Reconcile" }, [trigger({ apiVersion: "v2" }), byOwner]),
    );
    expect(edits).toEqual([
      [expect.stringMatching(/^trigger settings: .* 2 waiting keys are read again from the API/)],
    ]);
  });

  it("to a trigger that is gone, also if nothing waits for it, in the words of `validate`", async () => {
    const first = await open();
    const to = manifest({ mode: "Reconcile" }, [trigger()]);
    const before = await editsOnRecord(first.store, to);
    expect(before).toEqual(["trigger pods of Pod is gone: what waits for it is kept for seven days"]);
    const second = await restarted(first, to);
    expect(second.edits).toEqual([before]);
    second.dispatcher.halt();
    expect((await restarted(first, to)).edits).toEqual([]);
  });
});
