import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

const open = async (policy: Parameters<typeof manifest>[0] = {}) => {
  const it = await (await DispatchFixture.open({ manifest: manifest(policy) })).listed();
  it.runner.answer = () => undefined;
  return it;
};

describe("lanes", () => {
  it("a lane never runs two events at once, and keeps their order", async () => {
    const { subscription, runner } = await open();
    for (const rv of [11, 13, 14]) subscription.change(change(rv === 11 ? "Added" : "Modified", "a", rv));
    subscription.change(change("Added", "b", 15));
    await quiet(runner);
    expect(runner.told).toEqual(["Added a@11", "Added b@15"]);
    await runner.end("a");
    await runner.end("a");
    await runner.end("a");
    expect(runner.told).toEqual(["Added a@11", "Added b@15", "Modified a@13", "Modified a@14"]);
  });

  it("no more lanes run at once than the manifest allows", async () => {
    const { subscription, runner } = await open({ concurrency: 2 });
    for (const [index, name] of ["a", "b", "c"].entries()) subscription.change(change("Added", name, 11 + index));
    await quiet(runner);
    expect(runner.open.size).toBe(2);
    await runner.end("a");
    expect([...runner.open.keys()]).toEqual(["b", "c"]);
  });

  it("two triggers of one function share the lane of an object", async () => {
    const triggers = [trigger(), trigger({ name: "other", changedFields: [["spec"]] })];
    const { subscription, runner, function: loaded } = await DispatchFixture.open({ manifest: manifest({}, triggers) });
    runner.answer = () => undefined;
    const other = loaded.subscription("other", { selection: "all", namespace: "" });
    for (const it of [subscription, other]) it.list("initial", undefined).end(resourceVersion("1"));
    subscription.change(change("Added", "a", 11));
    other.change(change("Added", "a", 11));
    await quiet(runner);
    expect(runner.deliveries.map((it) => it.trigger)).toEqual(["settings"]);
    await runner.end("a");
    expect(runner.deliveries.map((it) => it.trigger)).toEqual(["settings", "other"]);
  });

  it("live events go before those of a list, except inside a lane", async () => {
    const { subscription, runner } = await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) });
    runner.answer = () => undefined;
    const list = subscription.list("initial", undefined);
    for (const name of ["x", "y", "z"]) list.item(change("Added", name, 5));
    list.end(resourceVersion("9"));
    subscription.change(change("Added", "live", 11));
    subscription.change(change("Modified", "z", 12));
    await quiet(runner);
    for (const name of ["x", "live", "y", "z", "z"]) await runner.end(name);
    expect(runner.told.map((it) => it.split("@")[0])).toEqual([
      "Added x",
      "Added live",
      "Added y",
      "Added z",
      "Modified z",
    ]);
  });

  it("a lane that waits for its retry holds no slot", async () => {
    const { subscription, runner, clock } = await open({ concurrency: 1 });
    subscription.change(change("Added", "a", 11));
    subscription.change(change("Added", "b", 12));
    await quiet(runner);
    await runner.end("a", failure());
    expect([...runner.open.keys()]).toEqual(["b"]);
    await runner.end("b");
    await clock.advance(999);
    expect(runner.open.size).toBe(0);
    await clock.advance(1);
    expect(runner.told.at(-1)).toBe("Added a@11 #2 !");
  });

  it("retries come after the manifest's growing delays, or when the handler asked", async () => {
    const { subscription, runner, clock } = await open({
      retry: { maxAttempts: 9, initialDelayMs: 1_000, maxDelayMs: 3_000, factor: 2 },
    });
    subscription.change(change("Added", "a", 11));
    await quiet(runner);
    for (const [delay, outcome] of [
      [1_000, failure()],
      [2_000, failure()],
      [3_000, failure()],
      [45_000, failure("later", 45_000)],
    ] as const) {
      await runner.end("a", outcome);
      await clock.advance(delay - 1);
      expect(runner.open.size).toBe(0);
      await clock.advance(1);
      expect(runner.open.size).toBe(1);
    }
  });

  it("an interrupted attempt runs again, flagged and not counted", async () => {
    const { subscription, runner, clock } = await open();
    subscription.change(change("Added", "a", 11));
    await quiet(runner);
    await runner.end("a", { type: "interrupted" });
    await clock.advance(0);
    expect(runner.told).toEqual(["Added a@11", "Added a@11 !"]);
  });

  it("in mode Latest waiting Modifieds of an object collapse, and nothing else does", async () => {
    const { subscription, runner, outcomes } = await open({ mode: "Latest" });
    subscription.change(change("Added", "a", 11));
    await quiet(runner);
    for (const rv of [12, 13, 14]) subscription.change(change("Modified", "a", rv));
    subscription.change(change("Deleted", "a", 15));
    subscription.change(change("Added", "a", 16, { uid: "second" }));
    subscription.change(change("Modified", "a", 17, { uid: "second" }));
    subscription.change(change("Modified", "a", 18, { uid: "second" }));
    runner.answer = () => done;
    await runner.end("a");
    expect(runner.told).toEqual(["Added a@11", "Modified a@14", "Deleted a@15", "Added a@16", "Modified a@18"]);
    expect(outcomes.get("dropped")).toBe(3);
  });

  it("a name that passes to another object is told of as a deletion first", async () => {
    const { subscription, runner } = await open();
    runner.answer = () => done;
    subscription.change(change("Added", "a", 11, { spec: "first" }));
    subscription.change(change("Added", "a", 20, { uid: "second" }));
    await quiet(runner);
    expect(runner.deliveries.map((it) => [it.type, it.id, JSON.parse(it.body.toString()).spec])).toEqual([
      ["Added", "settings:uid-a/11/Added", "first"],
      ["Deleted", "settings:uid-a/Deleted", "first"],
      ["Added", "settings:second/20/Added", { rv: 20 }],
    ]);
    expect(runner.deliveries[1]?.flags).toMatchObject({ synthetic: true, finalStateUnknown: true });
  });

  it("an object that comes and goes under a selector has an id for each time", async () => {
    const selective = manifest({}, [trigger({ labelSelector: "sync=true" })]);
    const { subscription, runner } = await (await DispatchFixture.open({ manifest: selective })).listed();
    subscription.change(change("Added", "a", 11));
    subscription.change(change("Deleted", "a", 12));
    subscription.change(change("Added", "a", 13));
    subscription.change(change("Deleted", "a", 14));
    await quiet(runner);
    expect(new Set(runner.deliveries.map((it) => it.id)).size).toBe(4);
  });

  it("a change that was received before is not delivered again", async () => {
    const { subscription, runner } = await open();
    runner.answer = () => done;
    for (const it of [change("Added", "a", 11), change("Modified", "a", 12), change("Deleted", "a", 13)]) {
      subscription.change(it);
      await quiet(runner);
      subscription.change(it);
    }
    subscription.change(change("Added", "a", 11));
    await quiet(runner);
    expect(runner.told).toEqual(["Added a@11", "Modified a@12", "Deleted a@13"]);
  });

  it("the handler gets the previous object where it uses it", async () => {
    const { subscription, runner } = await (await DispatchFixture.open({ usesOldObject: true })).listed();
    subscription.change(change("Added", "a", 11, { spec: 1 }));
    subscription.change(change("Modified", "a", 12, { spec: 2 }));
    subscription.change(change("Deleted", "a", 13, { spec: 3 }));
    await quiet(runner);
    const olds = runner.deliveries.map((it) => it.oldBody && JSON.parse(it.oldBody.toString()).spec);
    expect(olds).toEqual([undefined, 1, 2]);
  });
});

it("a function that is done with all objects keeps nothing of them, and no timer looks for what waits", async () => {
  const it = await (await DispatchFixture.open()).listed();
  await it.clock.advance(10_000);
  const before = it.clock.timers;
  for (let rv = 11; rv < 111; rv++) it.subscription.change(change("Added", `n${rv}`, rv));
  await quiet(it.runner);
  await it.clock.advance(20_000);
  expect([it.runner.deliveries.length, it.clock.timers]).toEqual([100, before]);
});
