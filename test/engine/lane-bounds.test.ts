import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Spilled } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, failure, manifest, quiet } from "./fixture.ts";

const retry = { maxAttempts: 1, initialDelayMs: 1_000, maxDelayMs: 3_600_000, factor: 1 };
const blocks = { manifest: manifest({ onFailure: "Block", retry }) };
const waitsAnHour = failure("busy", 3_600_000);

/** A function whose object `hot` has failed and waits for its retry. */
async function withHot(options: Parameters<typeof DispatchFixture.open>[0] = {}): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open(options)).listed();
  it.runner.answer = ({ object }) => (object.name === "hot" ? waitsAnHour : done);
  it.subscription.change(change("Added", "hot", 10));
  await quiet(it.runner);
  return it;
}

/** Sends `count` more changes of `hot`. */
function heat(it: DispatchFixture, count: number, rv = 11): void {
  for (let each = rv; each < rv + count; each++) it.subscription.change(change("Modified", "hot", each));
}

async function tellsOthers(it: DispatchFixture, name: string, rv: number): Promise<void> {
  it.subscription.change(change("Added", name, rv));
  await quiet(it.runner);
  expect(it.runner.told).toContain(`Added ${name}@${rv}`);
}

describe("an object that waits for its retry", () => {
  it("holds up no other of its function, however many events wait behind it", async () => {
    const it = await withHot();
    heat(it, 3_000);
    await tellsOthers(it, "other", 5_000);
    const { queued, spilled } = it.function.status();
    expect(queued).toBeLessThan(1_000);
    expect(queued + spilled).toBe(3_001);
  });

  it("holds up no other where it is blocked for good, at once or slowly, nor after a restart", async () => {
    const it = await withHot(blocks);
    for (let rv = 11, round = 0; round < 30; round++, rv += 450) {
      heat(it, 450, rv);
      await it.clock.advance(round < 15 ? 90_000 : 0);
    }
    await tellsOthers(it, "other", 50_000);
    expect(it.function.status().blockedLanes).toBe(1);
    await it.clock.advance(1_000);
    const next = await it.restart(blocks);
    await quiet(next.runner);
    await tellsOthers(next, "later", 50_001);
  });

  it("is told of all that waited, in order, once it gets on", async () => {
    const it = await withHot(blocks);
    heat(it, 2_500);
    for (let each = 0; each < 900; each++) it.subscription.change(change("Added", `n${each}`, 3_000 + each));
    heat(it, 500, 4_000);
    await quiet(it.runner);
    it.runner.answer = () => done;
    await it.clock.advance(3_600_000);
    await quiet(it.runner);
    const hot = it.runner.deliveries.filter(({ object }) => object.name === "hot").map((each) => each.resourceVersion);
    const versions = [
      ...Array.from({ length: 2_501 }, (_, n) => 10 + n),
      ...Array.from({ length: 500 }, (_, n) => 4_000 + n),
    ];
    expect(hot).toEqual(["10", ...versions.map(String)]);
    it.subscription.bookmark(resourceVersion("9000"));
    await it.clock.advance(1_000);
    expect([it.disk.spill.size, it.subscription.lowWaterMark]).toEqual([0, "9000"]);
  });

  it("is told of all that waited in order where the process died meanwhile", async () => {
    const it = await withHot(blocks);
    heat(it, 2_500);
    await it.clock.advance(120_000);
    it.runner.deliveries.length = 0;
    it.runner.answer = () => done;
    const next = await it.restart(blocks);
    heat(next, 10, 2_511);
    await quiet(next.runner);
    expect(next.runner.deliveries.map((each) => Number(each.resourceVersion))).toEqual(
      Array.from({ length: 2_511 }, (_, n) => 10 + n),
    );
    await next.clock.advance(1_000);
    expect(next.disk.spill.size).toBe(0);
  });
});

it("a thousand objects that wait for their retry hold up no other", async () => {
  const it = await (await DispatchFixture.open()).listed();
  it.runner.answer = ({ object }) => (object.name.startsWith("hot") ? waitsAnHour : done);
  for (let each = 0; each < 1_200; each++) it.subscription.change(change("Added", `hot${each}`, 11 + each));
  await quiet(it.runner);
  await tellsOthers(it, "other", 5_000);
});

it("an object that waits for its retry keeps no body in memory, after whichever attempt", async () => {
  let read = 0;
  class CountingStore extends MemoryStore {
    override async spilled(...given: Parameters<MemoryStore["spilled"]>): Promise<readonly Spilled[]> {
      const events = await super.spilled(...given);
      read += events.length;
      return events;
    }
  }
  const it = await (await DispatchFixture.open({ store: new CountingStore() })).listed();
  it.runner.answer = () => failure("busy", 61_000);
  it.subscription.change(change("Added", "a", 11));
  await it.clock.advance(62_000);
  expect(it.runner.deliveries).toHaveLength(2);
  await it.clock.advance(62_000);
  expect([it.runner.deliveries.length, read]).toEqual([3, 2]);
});

it("an object whose handler hangs leaves the others of its function their share of the memory", async () => {
  const it = await (await DispatchFixture.open()).listed();
  it.runner.answer = ({ object }) => (object.name === "hot" ? undefined : done);
  it.subscription.change(change("Added", "hot", 10));
  heat(it, 3_000);
  await tellsOthers(it, "other", 5_000);
  await it.clock.advance(120_000);
  expect(it.function.status().queued).toBe(0);
});
