import { describe, expect, test } from "vitest";
import { mostRows } from "../../../runtime/engine/commit/commit-share.ts";
import type { Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import type { Batch } from "../../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../../journal/memory-store.ts";
import { change, type DispatchFixture, done, quiet } from "../fixture.ts";
import { byLabel, open, reconciler, runs, withPods } from "./fixture.ts";

/** Records the number of rows of each commit. */
class CountingStore extends MemoryStore {
  readonly sizes: number[] = [];
  keyRows = 0;
  committed: (batch: Batch) => void = () => {};

  override async commit(batch: Batch): Promise<readonly string[]> {
    this.sizes.push(batch.spill.length + batch.unspill.length);
    this.keyRows += batch.spill.filter(({ kind }) => kind === "key").length;
    const letters = await super.commit(batch);
    this.committed(batch);
    return letters;
  }
}

const names = (from: number) => Array.from({ length: 100 }, (_, number) => `k${from}-${number}`);

test("a function's keys share out what they write, so that no commit is long", async () => {
  const fixture = await open({
    store: new CountingStore(),
    manifest: reconciler({ concurrency: 1_000 }, byLabel),
  });
  fixture.runner.answer = () => done;
  for (let number = 0; number < 20; number++)
    fixture.pods.change(change("Added", `p${number}`, 10 + number, { spec: { of: names(number) } }));
  for (let turn = 0; turn < 20; turn++) {
    await quiet(fixture.runner);
    await fixture.clock.advance(50);
  }
  expect(new Set(runs(fixture).map((run) => run.split("@")[0])).size).toBe(2_000);
  const { sizes } = fixture.store as CountingStore;
  // A change that wakes at most a hundred keys is not split between two commits.
  expect(Math.max(...sizes)).toBeLessThanOrEqual(mostRows + 100);
});

test("runs that end at once share out what they write as well, and each end is kept", async () => {
  const store = new CountingStore();
  const fixture = await open({ store, manifest: reconciler({ concurrency: 1_000 }, byLabel) });
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.runner.answer = () => promise.then(() => ({ ...done, requeueAfterMs: 3_600_000 }));
  for (let number = 0; number < 10; number++)
    fixture.pods.change(change("Added", `p${number}`, 10 + number, { spec: { of: names(number) } }));
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  expect(fixture.function.status()).toMatchObject({ inFlight: 1_000 });
  store.sizes.length = 0;
  resolve();
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  expect(fixture.function.status()).toMatchObject({ inFlight: 0, requeued: 1_000 });
  expect(Math.max(...store.sizes)).toBeLessThanOrEqual(mostRows);
});

test("a function that stops waits for ends that were put off, and none comes again", async () => {
  const manifest = reconciler({ concurrency: 1_000 }, byLabel);
  const fixture = await open({ manifest });
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.runner.answer = () => promise.then(() => done);
  for (let number = 0; number < 10; number++)
    fixture.pods.change(change("Added", `p${number}`, 10 + number, { spec: { of: names(number) } }));
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  const drained = fixture.drain();
  resolve();
  expect(await drained).toBe(true);
  const runsBefore = fixture.runner.deliveries.length;
  const second = await withPods(await fixture.restart({ manifest }), false);
  await quiet(second.runner);
  expect([runsBefore, second.runner.deliveries.length, second.disk.spill.size]).toEqual([1_000, 1_000, 0]);
});

describe("a schedule that wakes a thousand keys", () => {
  const hourly = { name: "hourly", index: 2, times: { everyMs: 3_600_000 }, jitterMs: 0, missed: "Once" as const };
  const scheduled = { ...reconciler({ concurrency: 1_000 }, byLabel), schedules: [hourly] };

  async function due() {
    const disk = new MemoryDisk();
    const store = new CountingStore(disk);
    const fixture = await open({ store, disk, manifest: scheduled });
    for (let number = 0; number < 1_000; number++)
      fixture.subscription.change(change("Added", `o${number}`, 10 + number));
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    store.sizes.length = 0;
    fixture.runner.deliveries.length = 0;
    return { fixture, store };
  }
  const woken = ({ runner }: DispatchFixture) =>
    new Set(
      runner.deliveries
        .filter(({ causes = [] }) => causes.some(({ type }) => type === "Scheduled"))
        .map(({ object }) => object.name),
    ).size;

  test("wakes a hundred for each commit", async () => {
    const { fixture, store } = await due();
    await fixture.clock.advance(3_600_000);
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    expect(woken(fixture)).toBe(1_000);
    expect(Math.max(...store.sizes)).toBeLessThanOrEqual(mostRows + 100);
    expect(fixture.disk.spill.size).toBe(0);
  });

  test("wakes all of them after a kill between two pieces", async () => {
    const { fixture, store } = await due();
    fixture.dispatcher.hold("copy", "command");
    const halted = new Promise<void>((resolve) => {
      store.committed = ({ spill }) => {
        if (spill.filter(({ kind }) => kind === "key").length < 50) return;
        store.committed = () => {};
        fixture.kill();
        resolve();
      };
    });
    fixture.dispatcher.release("copy", "command");
    const passed = fixture.clock.advance(3_600_000);
    await Promise.all([halted, passed]);
    fixture.runner.deliveries.length = 0;
    const second = await withPods(await fixture.restart({ manifest: scheduled }), false);
    await second.listed();
    for (let each = 0; each < 5; each++) {
      await second.clock.advance(1_000);
      await quiet(second.runner);
    }
    expect(woken(second)).toBe(1_000);
  });
});

test("a change that wakes many keys goes on the function's account, and one that wakes a single key does not", async () => {
  const fixture = await open({ manifest: reconciler({ concurrency: 1_000 }, byLabel) });
  for (let number = 0; number < 200; number++)
    fixture.pods.change(change("Added", `s${number}`, 10 + number, { spec: { of: "shop" } }));
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  expect(fixture.function.status().parentSeconds.get("rows")).toBeUndefined();
  fixture.pods.change(change("Added", "p", 1_000, { spec: { of: names(0) } }));
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  const rows = fixture.function.status().parentSeconds.get("rows") ?? 0;
  expect(rows).toBeGreaterThan(100 * 0.000_01);
  expect(rows).toBeLessThan(100 * 0.000_05);
});

test("a key whose row has as many causes as there may be is not written for one more, but for a deletion", async () => {
  const store = new CountingStore();
  const fixture = await open({ store, manifest: reconciler({}, byLabel) });
  fixture.dispatcher.hold("copy", "command");
  const { promise } = Promise.withResolvers<Outcome>();
  fixture.runner.answer = () => promise;
  fixture.dispatcher.release("copy", "command");
  const wake = async (from: number, count: number, type: "Added" | "Deleted" = "Added") => {
    store.keyRows = 0;
    for (let number = from; number < from + count; number++) {
      fixture.pods.change(
        change(type, `p${number}`, (type === "Added" ? 10 : 1_000) + number, { spec: { of: "shop" } }),
      );
      await fixture.clock.advance(300);
    }
    return store.keyRows;
  };
  // The first starts a run that continues.
  expect(await wake(0, 1)).toBe(1);
  expect(await wake(1, 16)).toBe(16);
  expect(await wake(17, 50)).toBe(0);
  expect(await wake(17, 1, "Deleted")).toBe(1);
});
