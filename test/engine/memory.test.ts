import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Budget } from "../../runtime/engine/work/budget.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, manifest, quiet } from "./fixture.ts";

/** A change whose body is a part of a socket's chunk, as the reader delivers it. */
function inChunk(given: Change): Change {
  const chunk = Buffer.alloc(64 * 1024);
  return { ...given, body: chunk.subarray(100, 100 + given.body.copy(chunk, 100)) };
}

test("an event that waits long does not keep the chunk alive that it came in", async () => {
  const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
  it.runner.answer = () => undefined;
  for (let index = 0; index < 900; index++) {
    it.subscription.change(inChunk(change("Added", `n${index}`, 11 + index)));
  }
  await it.clock.advance(1000);
  it.runner.answer = () => done;
  await it.runner.end("n0");
  await quiet(it.runner);
  expect(it.runner.deliveries).toHaveLength(900);
  const kept = new Set(it.runner.deliveries.map(({ body }) => body.buffer));
  const bytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(bytes).toBeLessThan(5 * 1024 * 1024);
});

test("functions that hold the same event keep one copy of it", async () => {
  const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) })).listed();
  const second = await it.dispatcher.function({ ...manifest(), name: "second" }, { usesOldObject: false });
  const other = second.subscription("settings", { selection: "all", namespace: "" });
  other.list("initial", undefined).end(resourceVersion("1"));
  const stuck = (name: string) => (name === "copy" ? "n0" : "n1");
  it.runner.answer = (each) => (each.object.name === stuck(each.function) ? undefined : done);
  const changes = Array.from({ length: 200 }, (_, index) => inChunk(change("Added", `n${index}`, 11 + index)));
  for (const each of changes) for (const subscription of [it.subscription, other]) subscription.change(each);
  await quiet(it.runner);
  for (const name of ["n0", "n1"]) await it.runner.end(name);
  const bodies = (name: string) =>
    it.runner.deliveries
      .filter((each) => each.function === name && each.object.name === "n150")
      .map(({ body }) => body);
  expect(bodies("copy")[0]).toBe(bodies("second")[0]);
});

test("functions that hold more than their share go to disk first when the budget is spent, and come back", async () => {
  const it = await (
    await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }), memoryBudget: 20_000 })
  ).listed();
  it.runner.answer = () => undefined;
  for (let index = 0; index < 100; index++) {
    it.subscription.change(change("Added", `n${index}`, 11 + index, { spec: "x".repeat(1000) }));
  }
  await it.clock.advance(1000);
  const { queued, spilled } = it.function.status();
  expect(queued).toBeLessThan(20);
  expect(queued + spilled).toBe(99);
  it.runner.answer = () => done;
  await it.runner.end("n0");
  await quiet(it.runner);
  expect(it.runner.told).toHaveLength(100);
});

test("a function that was loaded while the disk was nearly full uses its memory once there is room again", async () => {
  let spillLimit = 2_000;
  class GrowingStore extends MemoryStore {
    override get spillLimit(): number {
      return spillLimit;
    }
  }
  const store = new GrowingStore();
  const it = await (await DispatchFixture.open({ store, manifest: manifest({ concurrency: 1 }) })).listed();
  it.runner.answer = () => undefined;
  spillLimit = 10_000_000;
  for (let at = 11; at < 31; at++) {
    it.subscription.change(change("Added", `n${at}`, at, { spec: "x".repeat(1_000) }));
  }
  await it.clock.advance(1_000);
  expect(it.function.status()).toMatchObject({ queued: 19, spilled: 0 });
});

test("one that holds little is not made to pay for one that holds much, and what is given back is free again", () => {
  const budget = new Budget(() => 1000);
  budget.share(1);
  budget.share(1);
  budget.hold(990);
  expect(budget.isSpent(990)).toBe(false);
  budget.hold(10);
  expect([budget.isSpent(990), budget.isSpent(10)]).toEqual([true, false]);
  budget.hold(-990);
  expect(budget.isSpent(500)).toBe(false);
});
