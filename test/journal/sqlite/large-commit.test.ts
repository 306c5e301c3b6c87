import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch, type KnownWrite } from "../../../runtime/journal/batch.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../../runtime/journal/sqlite/journal.ts";
import { spilledEvent } from "../store-contract.ts";

const mebibyte = 1024 * 1024;
const objects = 12;

async function opened() {
  const made = mkdtempSync(join(tmpdir(), "watchfire-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  const store = new Checkpoint(new SqliteJournal({ folder: made, bootId: "boot-1" }));
  onTestFinished(() => store.close(false).catch(() => {}));
  const { id } = await store.openView("copy", "settings", "v1/ConfigMap");
  return { store, view: id };
}

const known = (view: number, name: string, version: string, size = mebibyte): KnownWrite => ({
  view,
  key: `team-a/${name}`,
  state: {
    uid: `uid-${name}`,
    resourceVersion: resourceVersion(version),
    hash: "h",
    deleted: false,
    matched: true,
    body: Buffer.alloc(size, version),
  },
});

const large = (view: number, version: string): Batch => ({
  ...emptyBatch,
  known: Array.from({ length: objects }, (_, index) => known(view, `o${index}`, version)),
});

/** The number of turns of the event loop until `work` resolves. */
async function turnsOf(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = () => {
    if (isDone) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  await work.finally(() => {
    isDone = true;
  });
  return turns;
}

it("the event loop runs after each mebibyte of a commit", async () => {
  const { store, view } = await opened();
  expect(await turnsOf(store.commit(large(view, "5")))).toBeGreaterThanOrEqual(objects - 1);
  const spill = Array.from({ length: objects }, (_, index) =>
    spilledEvent(view, index, { body: Buffer.alloc(mebibyte / 2), oldBody: Buffer.alloc(mebibyte / 2) }),
  );
  expect(await turnsOf(store.commit({ ...emptyBatch, spill }))).toBeGreaterThanOrEqual(objects - 1);
});

it("a commit that comes during a large one is written after it", async () => {
  const { store, view } = await opened();
  const first = store.commit(large(view, "5"));
  const second = store.commit({ ...emptyBatch, known: [known(view, "o0", "6", 10)] });
  await second;
  expect((await store.body(view, "team-a/o0"))?.bytes.toString()).toBe("6".repeat(10));
  await first;
  expect((await store.body(view, "team-a/o0"))?.bytes.toString()).toBe("6".repeat(10));
  expect((await store.body(view, "team-a/o1"))?.bytes.length).toBe(mebibyte);
});

it("a large commit that fails leaves nothing behind, and fails no other", async () => {
  const { store, view } = await opened();
  const spill = [
    spilledEvent(view, 1, { body: Buffer.alloc(mebibyte) }),
    spilledEvent(view, 2, { body: Buffer.alloc(mebibyte) }),
    spilledEvent(view + 1, 3),
  ];
  const failing = store.commit({ ...large(view, "5"), spill });
  const failed = expect(failing).rejects.toMatchObject({ code: "WF_CHECKPOINT_WRITE_FAILED" });
  const waiting = store.commit({ ...emptyBatch, known: [known(view, "o1", "6", 10)] });
  const seen: number[] = [];
  const turns = turnsOf(failing.catch(() => {}));
  for (let turn = 0; turn < 2 * objects; turn++, await nextTurn()) {
    const spilled = await store.spilled("copy", Number.MIN_SAFE_INTEGER, 10);
    seen.push(...spilled.map(({ sequence }) => sequence));
  }
  expect(await turns).toBeGreaterThanOrEqual(objects);
  await failed;
  expect(seen).toEqual([]);
  await waiting;
  expect(await store.body(view, "team-a/o0")).toBeUndefined();
  expect((await store.body(view, "team-a/o1"))?.bytes.toString()).toBe("6".repeat(10));
});

it("a store that is closed during a large commit is closed after it", async () => {
  const { store, view } = await opened();
  const commit = store.commit(large(view, "5"));
  await Promise.all([commit, store.close(true)]);
});
