import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

const replaced = manifest({}, [trigger({ name: "labelled", labelSelector: "x=1", initialEvents: "Skip" })]);
const sevenDays = 7 * 24 * 3_600_000;

/** A paused function with two waiting events. */
async function withWaiting(): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open()).listed();
  it.dispatcher.hold("copy", "command");
  it.subscription.change(change("Added", "a", 11));
  it.subscription.change(change("Added", "b", 12));
  await quiet(it.runner);
  return it;
}

/** Reloads the function in the same process, as after a change of its manifest. */
async function reloaded({ dispatcher }: DispatchFixture, to = replaced) {
  await dispatcher.remove("copy", { retire: false });
  return dispatcher.function(to, { usesOldObject: false });
}

const gone = (waiting: number) =>
  expect.objectContaining({
    msg: "trigger is gone, its events wait",
    function: "copy",
    trigger: "settings",
    waiting,
    hint: expect.stringContaining("within seven days"),
  });

describe("a trigger that is replaced while its events wait", () => {
  it("logs how many events wait, and delivers them once it has its name again", async () => {
    const it = await withWaiting();
    await reloaded(it);
    expect(it.warnings).toEqual([gone(2)]);
    const back = await reloaded(it, manifest());
    const subscription = back.subscription("settings", { selection: "all", namespace: "" });
    expect(subscription.resumeFrom).toBe("1");
    subscription.change(change("Added", "a", 11));
    subscription.change(change("Added", "b", 12));
    it.dispatcher.release("copy", "command");
    await quiet(it.runner);
    expect([it.runner.told, it.warnings.length]).toEqual([["Added a@11", "Added b@12"], 1]);
  });

  it("gives those on disk, though the cluster has no history of them any more", async () => {
    const it = await withWaiting();
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(120_000);
    await reloaded(it);
    expect(it.warnings).toEqual([gone(2)]);
    await reloaded(it, manifest());
    it.dispatcher.release("copy", "command");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added b@12"]);
  });

  it("ends them under its name again, also where that keeps the selector of the one that took its place", async () => {
    const it = await withWaiting();
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(120_000);
    await reloaded(it);
    expect(it.warnings).toEqual([gone(2)]);
    await reloaded(it, manifest({}, [trigger({ labelSelector: "x=1", initialEvents: "Skip" })]));
    it.dispatcher.release("copy", "command");
    await quiet(it.runner);
    await it.clock.advance(1_000);
    // It no longer selects either of them.
    expect([it.runner.told, it.outcomes.get("filtered"), it.disk.spill.size]).toEqual([[], 2, 0]);
  });

  it("is told of with letters that were replayed while nothing ran", async () => {
    const oneAttempt = manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 1 } });
    const it = await (await DispatchFixture.open({ manifest: oneAttempt })).listed();
    it.runner.answer = () => failure();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    it.runner.answer = () => done;
    await it.dispatcher.remove("copy", { retire: false });
    const letters = new DeadLetters(it.store, it.dispatcher);
    await letters.replay((await it.store.deadLetters()).map(({ letter }) => letter));
    await it.dispatcher.function(replaced, { usesOldObject: false });
    expect(it.warnings.at(-1)).toEqual(gone(1));
  });

  it("says nothing where none wait", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11));
    await quiet(it.runner);
    await reloaded(it);
    expect(it.warnings).toEqual([]);
  });
});

describe("events of a function that is removed", () => {
  it("are counted in the log, and end as dropped when its records are deleted", async () => {
    const it = await withWaiting();
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(120_000);
    await it.dispatcher.remove("copy", { retire: true });
    expect(it.warnings).toEqual([gone(2)]);
    await it.clock.advance(sevenDays + 1);
    const others = ["one", "two"].map((name) => ({ ...manifest(), name }));
    await Promise.all(others.map((other) => it.dispatcher.function(other, { usesOldObject: false })));
    expect(it.outcomes.get("dropped")).toBe(2);
    expect(it.warnings.slice(1)).toEqual([
      {
        msg: "events dropped, their trigger is gone for seven days",
        function: "copy",
        trigger: "settings",
        dropped: 2,
      },
    ]);
  });

  it("are told of at the start that no longer finds it", async () => {
    const it = await withWaiting();
    await it.clock.advance(120_000);
    await it.dispatcher.remove("copy", { retire: false });
    await it.dispatcher.retireOthers((name) => name === "another");
    expect(it.warnings).toEqual([gone(2)]);
  });
});
