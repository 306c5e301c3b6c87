import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Spilled } from "../../runtime/journal/batch.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import { BusyClock } from "../busy-clock.ts";
import { change, DispatchFixture, done, failure, inAnHour, manifest, quiet, trigger } from "./fixture.ts";

const names = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `n${from + index}`);

/** A row whose body does work when it is migrated to the current form. */
const worked = (row: Spilled, work: () => void): Spilled =>
  row.kind === "key"
    ? row
    : {
        ...row,
        get body() {
          work();
          return row.body;
        },
      };

describe("what does not fit in memory", () => {
  it("goes to disk, does not hold the mark up, and comes back in order", async () => {
    const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    it.runner.answer = () => undefined;
    for (const [index, name] of names(0, 2_500).entries()) it.subscription.change(change("Added", name, 11 + index));
    it.subscription.change(change("Modified", "n0", 9_000));
    await it.clock.advance(1_000);
    expect(it.function.status()).toMatchObject({ queued: 999, inFlight: 1, spilled: 1_501 });
    it.runner.answer = () => done;
    await it.runner.end("n0");
    const told = it.runner.deliveries.map((delivery) => delivery.object.name);
    expect(told).toEqual([...names(0, 2_500), "n0"]);
    it.subscription.bookmark(resourceVersion("9001"));
    await it.clock.advance(1_000);
    expect(it.disk.spill.size).toBe(0);
    expect((await it.store.views())[0]?.cursors[0]?.lowWaterMark).toBe("9001");
  });

  it("comes back in turns of the event loop, on the function's account", async () => {
    const clock = new BusyClock();
    const it = await (await DispatchFixture.open({ clock, manifest: manifest({ concurrency: 1 }) })).listed();
    it.runner.answer = () => undefined;
    for (const [index, name] of names(0, 1_500).entries()) it.subscription.change(change("Added", name, 11 + index));
    await clock.advance(1_000);
    const spilled = it.store.spilled.bind(it.store);
    it.store.spilled = async (...page) => (await spilled(...page)).map((row) => worked(row, () => clock.work(1)));
    clock.longest = 0;
    it.runner.answer = () => done;
    await it.runner.end("n0");
    for (let second = 0; second < 10; second++) await clock.advance(1_000);
    expect(it.runner.deliveries.map((delivery) => delivery.object.name)).toEqual(names(0, 1_500));
    expect(clock.longest).toBeLessThanOrEqual(10);
    expect(it.function.status().parentSeconds.get("rows")).toBeGreaterThan(0.5);
  });

  it("holds no other function up while a list's large objects go there: a commit has a mebibyte or two of them", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) });
    it.runner.answer = () => undefined;
    const sizes: number[] = [];
    const { commit } = it.store;
    it.store.commit = (batch) => {
      sizes.push(batch.spill.reduce((sum, { body }) => sum + body.length, 0));
      return commit.call(it.store, batch);
    };
    const spec = "x".repeat(1 << 20);
    const listed = names(0, 20).map((name, index) => change("Added", name, 11 + index, { spec }));
    await it.list(100, listed, "initial");
    for (let turn = 0; turn < 20; turn++) await it.clock.advance(100);
    expect(it.disk.spill.size).toBe(20);
    expect(Math.max(...sizes)).toBeLessThan(3 << 20);
    expect((await it.store.views())[0]?.cursors[0]?.lowWaterMark).toBe("100");
  });

  it.each([
    ["objects of 1 MB", 1 << 20, 64, 0.2],
    ["objects of 10 KB, as many as spill", 10_000, 1_500, 0],
  ])("is charged for what writing %s takes", async (_, size, count, seconds) => {
    const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
    it.runner.answer = () => undefined;
    const spec = "x".repeat(size);
    for (const [index, name] of names(0, count).entries()) {
      it.subscription.change(change("Added", name, 11 + index, { spec }));
    }
    await it.clock.advance(1_000);
    expect(it.disk.spill.size).toBeGreaterThan(count / 4);
    const rows = it.function.status().parentSeconds.get("rows") ?? 0;
    if (seconds === 0) expect(rows).toBe(0);
    else expect(rows).toBeGreaterThan(seconds / 2);
  });

  it("what waits there of a trigger that is gone keeps nothing of the others from coming back", async () => {
    const two = { manifest: manifest(inAnHour, [trigger(), trigger({ name: "pods", kind: "Pod" })]) };
    const first = await (await DispatchFixture.open(two)).listed();
    const pods = first.function.subscription("pods", { selection: "all", namespace: "" });
    pods.list("initial", undefined).end(resourceVersion("1"));
    first.runner.answer = () => failure();
    pods.change(change("Added", "pod", 11));
    first.subscription.change(change("Added", "a", 12));
    await first.clock.advance(70_000);
    expect(first.disk.spill.size).toBe(2);
    const second = await first.restart({ manifest: manifest() });
    second.runner.answer = () => done;
    await second.clock.advance(1_000);
    expect(second.runner.told.at(-1)).toBe("Added a@12 #2 !");
  });

  it("an event that is unfinished for a minute goes to disk too, and the mark passes it", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = (delivery) => (delivery.object.name === "stuck" ? undefined : done);
    it.subscription.change(change("Added", "stuck", 11));
    it.subscription.change(change("Modified", "stuck", 12));
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(50_000);
    expect(it.subscription.lowWaterMark).toBe("1");
    await it.clock.advance(20_000);
    expect(it.subscription.lowWaterMark).toBe("20");
    it.runner.answer = () => done;
    const second = await it.restart();
    await quiet(second.runner);
    expect(second.runner.told).toEqual(["Added stuck@11", "Added stuck@11 #2 !", "Modified stuck@12"]);
    expect(second.subscription.resumeFrom).toBe("20");
  });

  it("an event from before the start goes to disk as soon as it is found waiting, since its history may go next", async () => {
    const first = await (await DispatchFixture.open()).listed();
    const it = await first.restart();
    it.runner.answer = (delivery) => (delivery.object.name.startsWith("stuck") ? undefined : done);
    it.subscription.serverIsAt(resourceVersion("15"));
    it.subscription.change(change("Added", "stuck", 11));
    it.subscription.change(change("Added", "quick", 12));
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(6_000);
    expect(it.subscription.lowWaterMark).toBe("20");
    it.subscription.change(change("Added", "stuck-since", 21));
    it.subscription.bookmark(resourceVersion("30"));
    await it.clock.advance(6_000);
    expect(it.subscription.lowWaterMark).toBe("20");
    await it.clock.advance(60_000);
    expect(it.subscription.lowWaterMark).toBe("30");
  });

  it("keeps the order of a lane of which only a part was on disk when the process ended", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.runner.answer = () => undefined;
    it.subscription.change(change("Added", "a", 11));
    for (const [index, name] of names(0, 1_000).entries()) it.subscription.change(change("Added", name, 100 + index));
    it.subscription.change(change("Modified", "a", 5_000));
    await it.clock.advance(1_000);
    it.runner.answer = () => done;
    it.runner.deliveries.length = 0;
    const second = await it.restart();
    second.subscription.change(change("Added", "a", 11));
    await quiet(second.runner);
    expect(second.runner.told.filter((line) => line.includes(" a@"))).toEqual(["Added a@11 #2 !", "Modified a@5000"]);
  });
});

describe("an event that is given up", () => {
  const twice = manifest({ retry: { maxAttempts: 2, initialDelayMs: 1_000, maxDelayMs: 1_000, factor: 1 } });

  const poisoned = async () => {
    const it = await (await DispatchFixture.open({ manifest: twice })).listed();
    it.runner.answer = (delivery) => (delivery.object.name === "poison" ? failure("bad") : done);
    it.subscription.change(change("Added", "poison", 11, { spec: "body" }));
    for (const [index, name] of names(0, 99).entries()) it.subscription.change(change("Added", name, 12 + index));
    it.subscription.bookmark(resourceVersion("500"));
    await quiet(it.runner);
    await it.clock.advance(5_000);
    await quiet(it.runner);
    return it;
  };

  it("is kept whole, holds nothing up, and can be replayed once the code is mended", async () => {
    const it = await poisoned();
    expect(Object.fromEntries(it.outcomes)).toEqual({ ok: 99, retry: 1, dead_letter: 1 });
    expect(it.subscription.lowWaterMark).toBe("500");
    const letters = new DeadLetters(it.store, it.dispatcher);
    const [letter] = await letters.list();
    expect(letter).toMatchObject({ function: "copy", name: "poison", attempts: 2, error: { message: "bad" } });
    expect(JSON.parse((await letters.show(letter?.letter ?? "")).body.toString()).spec).toBe("body");
    it.runner.answer = () => done;
    await letters.replay([letter?.letter ?? ""]);
    await quiet(it.runner);
    expect(it.runner.told.at(-1)).toBe("Added poison@11 !");
    await it.clock.advance(1_000);
    expect([await letters.list(), it.disk.spill.size, it.function.status().deadLetters]).toEqual([[], 0, 0]);
  });

  it("can be replayed while the runtime is stopped, and is delivered when it starts", async () => {
    const it = await poisoned();
    await it.drain();
    const letters = new DeadLetters(it.store);
    await letters.replay((await letters.list()).map(({ letter }) => letter));
    it.runner.answer = () => done;
    const second = await it.restart();
    await quiet(second.runner);
    expect(second.runner.told.at(-1)).toBe("Added poison@11 !");
  });

  it("replayed after its object changed does not take the object's position back", async () => {
    const it = await poisoned();
    it.runner.answer = () => done;
    it.subscription.change(change("Modified", "poison", 600));
    await quiet(it.runner);
    await it.dispatcher.replay(await new DeadLetters(it.store).show("1"));
    await quiet(it.runner);
    it.subscription.change(change("Modified", "poison", 600));
    await quiet(it.runner);
    expect(it.runner.told.slice(-2)).toEqual(["Modified poison@600", "Added poison@11 !"]);
  });

  it("is forgotten where the manifest says Drop, and holds its lane where it says Block", async () => {
    for (const onFailure of ["Drop", "Block"] as const) {
      const it = await (await DispatchFixture.open({ manifest: manifest({ ...twice.delivery, onFailure }) })).listed();
      it.runner.answer = () => failure();
      it.subscription.change(change("Added", "a", 11));
      it.subscription.change(change("Modified", "a", 12));
      for (let second = 0; second < 5; second++) await it.clock.advance(1_000);
      expect(it.runner.told.includes("Modified a@12")).toBe(onFailure === "Drop");
      expect(await it.store.deadLetters()).toEqual([]);
      expect(it.function.status().blockedLanes).toBe(onFailure === "Block" ? 1 : 0);
    }
  });
});
