import { expect, test } from "vitest";
import { pause, systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { copyJournal } from "../../runtime/migrate/copy.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { letter } from "../journal/store-contract.ts";
import { folderOf } from "../tools/folder.ts";
import { lookMs, watchLoopLag } from "../tools/loop-lag.ts";

test("a body that is older than its object is so where it is carried to, and a function that is paused, with its own state", async () => {
  const from = new MemoryStore();
  const { id } = await from.openView("copy", "settings", "/ConfigMap");
  const state = { uid: "u", resourceVersion: resourceVersion("1"), hash: "", deleted: false, matched: true };
  const body = Buffer.from("one");
  const put = (key: string, body: Buffer | "older") => ({
    ...emptyBatch,
    known: [{ view: id, key, state: { ...state, body } }],
  });
  await from.commit(put("a/exact", body));
  await from.commit(put("a/older", body));
  await from.commit(put("a/older", "older"));
  await from.setPaused("copy", 12);
  await from.commit({ ...emptyBatch, state: [{ function: "copy", key: "seen", value: "[1]" }] });
  const to = new Checkpoint(new SqliteJournal({ folder: folderOf({}) }));
  await copyJournal(from, to);
  const view = (await to.views())[0]?.id ?? 0;
  expect(await to.body(view, "a/exact")).toEqual({ bytes: body, isOlder: false });
  expect(await to.body(view, "a/older")).toEqual({ bytes: body, isOlder: true });
  expect([...(await to.paused())]).toEqual([["copy", 12]]);
  expect([...to.ownState("copy")]).toEqual([["seen", "[1]"]]);
  await to.close(true);
});

test("a trigger that one of several stores has under its name before a rename is one trigger where they are carried to", async () => {
  const to = new MemoryStore();
  for (const [index, trigger] of ["settings", "renamed"].entries()) {
    const from = new MemoryStore();
    const { id } = await from.openView("copy", trigger, "/ConfigMap");
    await from.recordViews([{ id, trigger, identity: "settings", manifest: `{"mode":"All"}` }]);
    const state = { uid: "u", resourceVersion: resourceVersion("1"), hash: "", deleted: false, matched: true };
    await from.commit({
      ...emptyBatch,
      known: [{ view: id, key: `a/${index}`, state: { ...state, body: undefined } }],
    });
    await copyJournal(from, to);
  }
  const views = await to.views();
  expect(views.map(({ trigger, identity }) => [trigger, identity])).toEqual([["settings", "settings"]]);
  const found: string[] = [];
  await to.known(views[0]?.id ?? 0, (key) => found.push(key));
  expect(found).toEqual(["a/0", "a/1"]);
});

test("positions of many objects are carried over with the event loop turning, so that a Lease is renewed meanwhile", async () => {
  const from = new Checkpoint(new SqliteJournal({ folder: folderOf({}) }));
  const { id } = await from.openView("copy", "settings", "/ConfigMap");
  const body = Buffer.alloc(500, "x");
  const count = 40_000;
  await from.commit({
    ...emptyBatch,
    known: Array.from({ length: count }, (_, index) => ({
      view: id,
      key: `team/object-${index}`,
      state: {
        uid: "u",
        resourceVersion: resourceVersion(String(index)),
        hash: "",
        deleted: false,
        matched: true,
        body,
      },
    })),
  });
  const to = new MemoryStore();
  const lag = watchLoopLag();
  await copyJournal(from, to);
  // Waits, so that a missing turn would be noticed, too.
  await pause(systemClock, 2 * lookMs);
  const worst = lag.stop();
  // All of it together is more than half a second of work.
  expect(worst).toBeLessThan(300);
  let found = 0;
  await to.known((await to.views())[0]?.id ?? 0, () => found++);
  expect(found).toBe(count);
  await from.close(true);
});

test("a dead letter whose body was dropped is known as that where it is carried to", async () => {
  const from = new Checkpoint(new SqliteJournal({ folder: folderOf({}) }));
  const { id: view } = await from.openView("copy", "settings", "/ConfigMap");
  await from.limitDeadLetters("copy", { maxCount: 9, maxBytes: 800 });
  const body = Buffer.alloc(1_000, "x");
  await from.commit({ ...emptyBatch, deadLetters: [{ ...letter(view), body }] });
  const to = new MemoryStore();
  await copyJournal(from, to);
  const [carried] = await to.deadLetters();
  expect(carried?.bodyDropped).toBe(true);
  await from.close(true);
});
