import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { emptyBatch } from "../../runtime/journal/batch.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "./fixture.ts";

describe("a subscription", () => {
  it("with initialEvents Skip only learns what is there, and tells what happens after", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({}, [trigger({ initialEvents: "Skip" })]) });
    await it.list(9, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
    it.subscription.change(change("Modified", "a", 11));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@11"]);
  });

  it("emits nothing of a list that was not complete", async () => {
    const it = await DispatchFixture.open();
    await it.list(9, [change("Added", "a", 5), change("Added", "b", 6)]);
    const half = it.subscription.list("relist", resourceVersion("9"));
    half.item(change("Added", "a", 12));
    half.abort();
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5", "Added b@6"]);
  });

  it("holds a list back that would delete most of what is known, until a second one agrees", async () => {
    const it = await DispatchFixture.open();
    const all = Array.from({ length: 150 }, (_, index) => change("Added", `n${index}`, 5 + index));
    await it.list(200, all);
    await quiet(it.runner);
    expect(await it.list(300, [])).toBe("held");
    await it.clock.advance(30_000);
    expect(it.runner.deliveries).toHaveLength(150);
    expect(await it.list(301, [])).toBe("counted");
    await quiet(it.runner);
    expect(it.runner.deliveries).toHaveLength(300);
  });

  it("after a rewind tells what differs, by ids that were not used, and goes on from there", async () => {
    const it = await DispatchFixture.open();
    await it.list(500, [change("Added", "same", 100), change("Added", "undone", 400), change("Added", "lost", 300)]);
    await it.list(200, [change("Added", "same", 100), change("Added", "undone", 150)], "rv-rewind");
    await quiet(it.runner);
    const told = it.runner.deliveries.slice(3);
    expect(told.map(({ type, id, flags }) => [type, id, flags.reason]).sort()).toEqual([
      ["Deleted", "settings:uid-lost/Deleted@1", "rv-rewind"],
      ["Modified", "settings:uid-undone/150/Modified@1", "rv-rewind"],
    ]);
    expect(it.subscription.lowWaterMark).toBe("200");
    it.subscription.change(change("Modified", "same", 250));
    await quiet(it.runner);
    expect(it.runner.deliveries.at(-1)?.id).toBe("settings:uid-same/250/Modified@1");
  });

  it("after a rewind tells of a name made anew whose deletion, from before it, has not been handled yet", async () => {
    const it = await DispatchFixture.open();
    await it.list(9, [change("Added", "a", 5)]);
    it.runner.answer = () => undefined;
    it.subscription.change(change("Deleted", "a", 900));
    await quiet(it.runner);
    await it.list(41, [], "rv-rewind");
    it.subscription.change(change("Added", "a", 50, { uid: "another" }));
    await it.runner.end("a");
    it.subscription.change(change("Modified", "a", 52, { uid: "another" }));
    it.subscription.change(change("Modified", "a", 51, { uid: "another" }));
    it.runner.answer = () => done;
    await it.runner.end("a");
    expect(it.runner.told.slice(1)).toEqual(["Deleted a@900", "Added a@50", "Modified a@52"]);
    it.subscription.change(change("Deleted", "a", 60, { uid: "another" }));
    it.subscription.bookmark(resourceVersion("70"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect([it.runner.told.at(-1), it.subscription.lowWaterMark]).toEqual(["Deleted a@60", "70"]);
  });

  it("tells of objects that went with their definition, and why", async () => {
    const it = await DispatchFixture.open();
    await it.list(9, [change("Added", "a", 5)]);
    await it.list(20, [], "crd-removed");
    await quiet(it.runner);
    expect(it.runner.deliveries.map(({ type, flags }) => [type, flags.reason])).toEqual([
      ["Added", undefined],
      ["Deleted", "crd-removed"],
    ]);
  });

  it("of an API whose resourceVersions have no order drops only what is the same, and lists at every start", async () => {
    const it = await (await DispatchFixture.open()).listed();
    for (const rv of ["x-b", "x-a", "x-a"]) it.subscription.change(change("Modified", "a", rv));
    it.subscription.bookmark(resourceVersion("x-c"));
    await quiet(it.runner);
    await it.clock.advance(1_000);
    expect(it.runner.deliveries.map((delivery) => delivery.resourceVersion)).toEqual(["x-b", "x-a"]);
    expect((await it.restart()).subscription.resumeFrom).toBeUndefined();
  });

  it("tells objects apart by when they were created where the API gives no uid", async () => {
    const it = await (await DispatchFixture.open()).listed();
    it.subscription.change(change("Added", "a", 11, { uid: "" }));
    it.subscription.change(change("Modified", "a", 12, { uid: "" }));
    await quiet(it.runner);
    expect(it.runner.deliveries.map(({ type, object }) => [type, object.uid])).toEqual([
      ["Added", ""],
      ["Modified", ""],
    ]);
  });

  it("that hears nothing but bookmarks follows them with one write for each at most", async () => {
    let commits = 0;
    class CountingStore extends MemoryStore {
      override async commit(batch: typeof emptyBatch): Promise<readonly string[]> {
        commits++;
        return super.commit(batch);
      }
    }
    const it = await (await DispatchFixture.open({ store: new CountingStore() })).listed();
    await it.clock.advance(1_000);
    commits = 0;
    for (let minute = 1; minute <= 10; minute++) {
      it.subscription.bookmark(resourceVersion(String(100 + minute)));
      await it.clock.advance(60_000);
      expect((await it.store.views())[0]?.cursors[0]?.lowWaterMark).toBe(String(100 + minute));
    }
    expect(commits).toBe(10);
  });

  it("begins no handler while commits fail, pauses its source, and goes on when they succeed", async () => {
    class FullDisk extends MemoryStore {
      full = false;
      override async commit(batch: typeof emptyBatch): Promise<readonly string[]> {
        if (this.full) throw new Error("disk full");
        return super.commit(batch);
      }
    }
    const store = new FullDisk();
    const it = await (await DispatchFixture.open({ store })).listed();
    store.full = true;
    for (let rv = 11; rv < 2_100; rv++) it.subscription.change(change("Added", `n${rv}`, rv));
    await it.clock.advance(5_000);
    expect(it.runner.deliveries).toEqual([]);
    const { congested } = it.subscription;
    expect(congested).toBeInstanceOf(Promise);
    store.full = false;
    await it.clock.advance(2_000);
    await congested;
    await quiet(it.runner);
    expect(it.runner.deliveries).toHaveLength(2_089);
    expect(it.subscription.congested).toBeUndefined();
  });
});
