import { describe, expect, it, onTestFinished, vi } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { KnownObjects } from "../../runtime/engine/state/known-objects.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { settle } from "../virtual-clock.ts";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

/** Reloads the function with these triggers, as after a change of its manifest, and returns its subscription. */
async function reloaded(it: DispatchFixture, triggers = [trigger({ changedFields: [["spec"]] })]) {
  await it.dispatcher.remove("copy", { retire: false });
  const loaded = await it.dispatcher.function(manifest({}, triggers), { usesOldObject: false });
  await settle();
  return loaded.subscription(triggers[0]?.name ?? "", { selection: "all", namespace: "" });
}

describe("new code", () => {
  it("that cannot be put in place leaves the old running", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const refused = it.function.replace(manifest({ concurrency: 1 }), false, () => Promise.reject(new Error("no")));
    await expect(refused).rejects.toThrow("no");
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11"]);
  });

  it("is put in place while no attempt runs, and none begins meanwhile", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const swap = Promise.withResolvers<void>();
    let swapping = false;
    const replaced = it.function.replace(manifest(), false, () => {
      swapping = true;
      return swap.promise;
    });
    it.subscription.change(change("Added", "b", 12));
    await quiet(it.runner);
    expect([swapping, it.runner.told]).toEqual([false, ["Added a@11"]]);
    await it.runner.end("a");
    expect([swapping, it.runner.told]).toEqual([true, ["Added a@11"]]);
    swap.resolve();
    await replaced;
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added b@12"]);
  });

  it("that arrives while the runtime drains begins nothing", async () => {
    const it = await (await DispatchFixture.open()).listed();
    const swap = Promise.withResolvers<void>();
    const replaced = it.function.replace(manifest(), false, () => swap.promise);
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(1_000);
    swap.resolve();
    await replaced;
    await quiet(it.runner);
    expect([await drained, it.runner.told]).toEqual([true, []]);
  });
});

describe("a function that is loaded again while the runtime runs", () => {
  it("gets what had begun again, flagged and as the next attempt", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = () => failure();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const subscription = await reloaded(it);
    expect(subscription.resumeFrom).toBe("1");
    it.runner.answer = () => done;
    subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 #2 !"]);
  });

  it("does not find its position again when it was removed longer ago than positions are kept", async () => {
    const it = await (await DispatchFixture.open()).listed(7);
    await it.dispatcher.remove("copy", { retire: true });
    await it.clock.advance(7 * 24 * 3_600_000 + 1);
    const subscription = await reloaded(it);
    expect(subscription.resumeFrom).toBeUndefined();
  });

  it("begins nothing where the runtime drains by then", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    const drained = it.dispatcher.drain(1_000);
    const late = await it.dispatcher.function({ ...manifest(), name: "late" }, { usesOldObject: false });
    const subscription = late.subscription("settings", { selection: "all", namespace: "" });
    subscription.list("initial", undefined).end(resourceVersion("20"));
    subscription.change(change("Added", "b", 21));
    await quiet(it.runner);
    await it.runner.end("a");
    expect([await drained, it.runner.told]).toEqual([true, ["Added a@11"]]);
  });
});

describe("a namespace that leaves the scope and comes back", () => {
  it("never has its objects told under an id that was used before", async () => {
    const byLabel = trigger({ namespaces: { type: "labels", labelSelector: "team" } });
    const it = await (await DispatchFixture.open({ manifest: manifest({}, [byLabel]), namespace: "team-a" })).listed();
    const b = change("Added", "b", 6, { namespace: "team-b" });
    for (let rv = 10; rv < 40; rv += 10) {
      const joined = it.function.subscription("settings", { selection: "all", namespace: "team-b" });
      it.function.retain("settings", ["team-a", "team-b"]);
      const list = joined.list("initial", undefined);
      list.item(b);
      list.end(resourceVersion(String(rv)));
      await quiet(it.runner);
      // Once for the namespace that is deselected, once more for another one.
      for (const _ of [1, 2]) {
        it.function.retain("settings", ["team-a"]);
        await quiet(it.runner);
      }
    }
    expect(it.runner.told).toEqual([1, 2, 3].flatMap(() => ["Added b@6", "Deleted b@6"]));
    expect(new Set(it.runner.deliveries.map(({ id }) => id)).size).toBe(6);
  });
});

describe("a namespace that leaves the scope", () => {
  const byLabel = manifest({}, [trigger({ namespaces: { type: "labels", labelSelector: "team" } })]);
  const inTeamB = { manifest: byLabel, namespace: "team-b" };

  /** Restarts the process, and the next one finds that the namespace is not in scope. */
  async function leavesAgain(it: DispatchFixture): Promise<void> {
    const next = await it.restart(inTeamB);
    next.function.retain("settings", []);
    await quiet(it.runner);
    await it.clock.advance(1_000);
  }

  const b = change("Added", "b", 6, { namespace: "team-b" });

  it("is told of again, flagged, where that had begun when the process died, and no more once it is done", async () => {
    const it = await DispatchFixture.open(inTeamB);
    await it.list(9, [b], "initial");
    it.runner.answer = () => undefined;
    it.function.retain("settings", []);
    await quiet(it.runner);
    it.runner.answer = () => done;
    await leavesAgain(it);
    await leavesAgain(it);
    expect(it.runner.told).toEqual(["Added b@6", "Deleted b@6", "Deleted b@6 #2 !"]);
  });

  it("is told of once, where only the Added of its object had begun when the process died", async () => {
    const it = await DispatchFixture.open(inTeamB);
    it.runner.answer = () => undefined;
    it.subscription.list("initial", undefined).item(b);
    await quiet(it.runner);
    it.runner.answer = () => done;
    await leavesAgain(it);
    await leavesAgain(it);
    expect(it.runner.told).toEqual(["Added b@6", "Deleted b@6 !"]);
    expect(it.disk.begun.size).toBe(0);
  });

  it("leaves nothing behind of an object whose deletion was still to be told", async () => {
    const it = await DispatchFixture.open(inTeamB);
    await it.list(9, [b], "initial");
    it.runner.answer = () => undefined;
    it.subscription.change(change("Deleted", "b", 12, { namespace: "team-b" }));
    await quiet(it.runner);
    it.function.retain("settings", []);
    await it.runner.end("b");
    await it.clock.advance(1_000);
    expect(it.disk.views.get(1)?.known.size).toBe(0);
  });

  it("and comes back is not forgotten to have left, where the process dies before that is told", async () => {
    const it = await DispatchFixture.open(inTeamB);
    await it.list(9, [b], "initial");
    it.runner.answer = () => undefined;
    it.function.retain("settings", []);
    await quiet(it.runner);
    const back = it.function.subscription("settings", { selection: "all", namespace: "team-b" });
    back.list("initial", undefined).end(resourceVersion("20"));
    back.bookmark(resourceVersion("21"));
    await it.clock.advance(1_000);
    const next = await it.restart(inTeamB);
    it.runner.answer = () => done;
    expect(next.subscription.resumeFrom).toBe("21");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added b@6", "Deleted b@6", "Deleted b@6 #2 !"]);
  });
});

describe("a scope that is widened and narrowed again", () => {
  const inTeamA = [trigger({ namespaces: { type: "names", names: ["team-a"] } })];
  const b = change("Added", "b", 6, { namespace: "team-b" });

  it("tells of what is back, and does not repeat what came and went meanwhile", async () => {
    const all = await DispatchFixture.open();
    await all.list(9, [change("Added", "a", 5), b]);
    await all.clock.advance(1_000);
    const one = await all.restart({ manifest: manifest({}, inTeamA), namespace: "team-a" });
    await one.list(20, [change("Added", "a", 5)]);
    const between = [change("Added", "x", 21), change("Deleted", "x", 22)];
    for (const it of between) one.subscription.change(it);
    one.subscription.bookmark(resourceVersion("23"));
    await quiet(one.runner);
    await one.clock.advance(1_000);
    const again = await one.restart();
    expect(again.subscription.resumeFrom).toBeUndefined();
    await again.list(30, [change("Added", "a", 5), b]);
    await quiet(again.runner);
    expect(again.runner.told.slice(2)).toEqual(["Deleted b@6", "Added x@21", "Deleted x@22", "Added b@6"]);
    const ids = again.runner.deliveries.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("does not resume from where it was before it was widened", async () => {
    const one = await DispatchFixture.open({ manifest: manifest({}, inTeamA), namespace: "team-a" });
    await one.list(9, [change("Added", "a", 5)]);
    await one.clock.advance(1_000);
    const all = await one.restart();
    await all.list(20, [change("Added", "a", 5)]);
    for (const it of [change("Added", "x", 21), change("Deleted", "x", 22)]) all.subscription.change(it);
    all.subscription.bookmark(resourceVersion("23"));
    await quiet(all.runner);
    await all.clock.advance(1_000);
    const again = await all.restart({ manifest: manifest({}, inTeamA), namespace: "team-a" });
    expect(again.subscription.resumeFrom).toBeUndefined();
    await again.list(30, [change("Added", "a", 5)]);
    expect(again.runner.told).toEqual(["Added a@5", "Added x@21", "Deleted x@22"]);
  });
});

it("a load that the store fails keeps nothing of the function in memory", async () => {
  class FailingStore extends MemoryStore {
    fails = false;

    override known(...given: Parameters<MemoryStore["known"]>): ReturnType<MemoryStore["known"]> {
      const isPods = this.disk.views.get(given[0])?.trigger === "pods";
      if (this.fails && isPods) throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: "full" });
      return super.known(...given);
    }
  }
  const store = new FailingStore();
  const two = manifest({}, [trigger(), trigger({ name: "pods", kind: "Pod" })]);
  const it = await (await DispatchFixture.open({ store, manifest: two })).listed();
  it.subscription.change(change("Added", "a", 11));
  await quiet(it.runner);
  await it.dispatcher.remove("copy", { retire: false });
  store.fails = true;
  const closed = vi.spyOn(KnownObjects.prototype, "close");
  onTestFinished(() => closed.mockRestore());
  const load = () => it.dispatcher.function(two, { usesOldObject: false });
  await expect(load()).rejects.toMatchObject({ code: "WF_CHECKPOINT_WRITE_FAILED" });
  expect(closed.mock.contexts.map((view) => (view as KnownObjects).trigger.name)).toEqual(["settings", "pods"]);
  store.fails = false;
  await load();
});
