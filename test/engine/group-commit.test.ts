import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Commits } from "../../runtime/engine/commit/commits.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, manifest } from "./fixture.ts";

/** Duration of a commit in milliseconds: long enough that attempts have to share one. */
const commitMs = 5;

async function running(lanes: number) {
  const clock = new VirtualClock();
  class SlowDisk extends MemoryStore {
    override async commit(batch: Batch): Promise<readonly string[]> {
      await new Promise<void>((resolve) => clock.after(commitMs, resolve));
      return super.commit(batch);
    }
  }
  const it = await (
    await DispatchFixture.open({ clock, store: new SlowDisk(), manifest: manifest({ concurrency: lanes }) })
  ).listed();
  it.runner.answer = () => undefined;
  for (let rv = 11; rv < 11 + 2 * lanes; rv++) it.subscription.change(change("Added", `n${rv}`, rv));
  await clock.advance(1_000);
  expect(it.runner.deliveries).toHaveLength(lanes);
  return it;
}

async function end(it: DispatchFixture, from: number, count: number): Promise<void> {
  for (let rv = from; rv < from + count; rv++) await it.runner.end(`n${rv}`);
}

test("an attempt that is about to begin beside many that run waits for others to share its commit", async () => {
  const it = await running(64);
  await end(it, 11, 1);
  await it.clock.advance(commitMs);
  await end(it, 12, 20);
  await it.clock.advance(2 * commitMs);
  expect(it.runner.deliveries).toHaveLength(65);
  await it.clock.advance(20);
  expect(it.runner.deliveries).toHaveLength(85);
});

test("when two fifths of the attempts wait, their commit waits no longer, so that there is always work", async () => {
  const it = await running(80);
  await end(it, 11, 1);
  await it.clock.advance(commitMs);
  await end(it, 12, 32);
  await it.clock.advance(commitMs);
  expect(it.runner.deliveries).toHaveLength(113);
});

const commitsTo = (store: MemoryStore, clock: VirtualClock, permitted = () => true) =>
  new Commits({
    store,
    clock,
    observer: {},
    log: { info: () => {}, warn: () => {}, error: () => {} },
    firstJournalRow: 1,
    permitted,
    onLost: () => {},
  });

test("a position that may wait goes with the first commit after a quarter second, and with a flush at once", async () => {
  const clock = new VirtualClock();
  const written: number[] = [];
  class Noting extends MemoryStore {
    override commit(batch: Batch): Promise<readonly string[]> {
      written.push(...batch.cursors.map(() => clock.monotonic()));
      return super.commit(batch);
    }
  }
  const commits = commitsTo(new Noting(), clock);
  const at = { view: 1, namespace: "", selection: "", epoch: 0, lowWaterMark: resourceVersion("5"), initial: false };
  const owner = { cursor: () => at };
  const began = clock.monotonic();
  for (let index = 0; index < 40; index++) {
    commits.cursorMovedLater(owner);
    commits.begin(
      { view: 1, key: "a", id: `${index}`, resourceVersion: at.lowWaterMark, type: "Added", attempt: 1 },
      () => commits.ended(),
    );
    await clock.advance(10);
  }
  expect(written.map((time) => time - began)).toEqual([250]);
  commits.cursorMovedLater(owner);
  await Promise.all([commits.flush(), clock.advance(0)]);
  expect(written).toHaveLength(2);
});

test("the record of an attempt that is settled twice takes no other's with it", async () => {
  const store = new MemoryStore();
  const commits = commitsTo(store, new VirtualClock());
  const attempt = (id: string) =>
    ({ view: 1, key: `team-a/${id}`, id, resourceVersion: resourceVersion("5"), type: "Added", attempt: 1 }) as const;
  const [a, b] = [attempt("a"), attempt("b")];
  const begun = (started: typeof a) => new Promise<number>((resolve) => commits.begin(started, resolve));
  const [row, other] = await Promise.all([begun(a), begun(b)]);
  expect(other).toBe(row);
  for (let time = 0; time < 2; time++) commits.settle(row, a);
  await commits.flush();
  expect((await store.begun()).map(({ id }) => id)).toEqual([row]);
  commits.settle(row, b);
  await commits.flush();
  expect(await store.begun()).toEqual([]);
});

test("an attempt does not begin whose record may not be written any more, nor one after it", async () => {
  const store = new MemoryStore();
  let isPermitted = true;
  const clock = new VirtualClock();
  const commits = commitsTo(store, clock, () => isPermitted);
  const begun: string[] = [];
  const begin = (id: string) => {
    const attempt = {
      view: 1,
      key: `team-a/${id}`,
      id,
      resourceVersion: resourceVersion("5"),
      type: "Added",
      attempt: 1,
    };
    commits.begin({ ...attempt, type: "Added" }, () => begun.push(id));
    return clock.advance(1_000);
  };
  await begin("a");
  isPermitted = false;
  await begin("b");
  isPermitted = true;
  await begin("c");
  expect([begun, (await store.begun()).length]).toEqual([["a"], 1]);
});
