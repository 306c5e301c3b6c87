import { expect, test } from "vitest";
import { mostRows } from "../../../runtime/engine/commit/commit-share.ts";
import type { Batch } from "../../../runtime/journal/batch.ts";
import { MemoryStore } from "../../../runtime/journal/memory.ts";
import { change, done, quiet } from "../fixture.ts";
import { byLabel, open, reconciler, runs } from "./fixture.ts";

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
  // A change and the runs that end meanwhile cannot be put off.
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * mostRows);
});
