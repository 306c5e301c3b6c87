import { expect, test } from "vitest";
import { mostRows } from "../../../runtime/engine/commit/commit-share.ts";
import type { Batch } from "../../../runtime/journal/batch.ts";
import { MemoryStore } from "../../../runtime/journal/memory.ts";
import { change, done, quiet } from "../fixture.ts";
import { byLabel, open, reconciler, runs, withPods } from "./fixture.ts";

/** Counts the rows of each commit. */
class CountingStore extends MemoryStore {
  readonly sizes: number[] = [];

  override async commit(batch: Batch): Promise<readonly string[]> {
    this.sizes.push(batch.spill.length + batch.unspill.length);
    return super.commit(batch);
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
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  expect(new Set(runs(fixture).map((run) => run.split("@")[0])).size).toBe(2_000);
  const { sizes } = fixture.store as CountingStore;
  // A change is not divided between two commits, where it wakes no more than a hundred keys.
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
