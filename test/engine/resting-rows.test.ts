import { describe, expect, it } from "vitest";
import { isUpTo, resourceVersion } from "../../runtime/base/resource-version.ts";
import { RestingRows } from "../../runtime/engine/commit/deferred-rows.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";

/** Records the rows of known objects that are written, as their resourceVersions. */
class NotingStore extends MemoryStore {
  readonly rows: (string | undefined)[] = [];

  override commit(batch: Batch): Promise<readonly string[]> {
    this.rows.push(...batch.known.map(({ state }) => state?.resourceVersion));
    return super.commit(batch);
  }
}

/** Delivers a Modified only if `.spec.n` changed. */
const options: DispatchOptions = { manifest: manifest({}, [trigger({ changedFields: [["spec", "n"]] })]) };

/** An object recorded at 11, whose changes up to 16 were each deferred within a second. */
async function heldBack(over: DispatchOptions = {}): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open({ ...options, ...over })).listed();
  it.subscription.change(change("Added", "a", 11, { spec: { n: 1 } }));
  await it.clock.advance(1_000);
  it.runner.deliveries.length = 0;
  for (let rv = 12; rv <= 16; rv++) it.subscription.change(change("Modified", "a", rv, { spec: { n: 1, rv } }));
  await it.clock.advance(1_000);
  return it;
}

const onRecord = async ({ store }: DispatchFixture) => {
  const [view] = await store.views();
  const rows: string[] = [];
  await store.known(view?.id ?? 0, (_, identity) => rows.push(identity.resourceVersion));
  return { rows, mark: view?.cursors[0]?.lowWaterMark };
};

describe("the row of an object whose changes are held back", () => {
  it("is written once in five seconds, and then the newest", async () => {
    const store = new NotingStore(new MemoryDisk());
    const it = await heldBack({ store });
    await it.clock.advance(5_000);
    expect(store.rows).toEqual(["11", "16"]);
  });

  it("is passed by no position on record that it is older than", async () => {
    const it = await heldBack();
    it.subscription.change(change("Added", "b", 17));
    it.subscription.bookmark(resourceVersion("20"));
    await it.clock.advance(1_000);
    const { rows, mark = resourceVersion("") } = await onRecord(it);
    expect([rows, isUpTo(mark, resourceVersion("11"))]).toEqual([["11", "17"], true]);
    await it.clock.advance(5_000);
    expect(await onRecord(it)).toEqual({ rows: ["16", "17"], mark: "20" });
  });

  it("leaves nothing to tell after a kill: its changes come again, and are held back again", async () => {
    const it = await (await heldBack()).restart(options);
    for (let rv = 12; rv <= 16; rv++) it.subscription.change(change("Modified", "a", rv, { spec: { n: 1, rv } }));
    it.subscription.change(change("Modified", "a", 17, { spec: { n: 2 } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@17"]);
  });

  it("is on record before the object's next event begins, so that none is told behind it after a kill", async () => {
    const first = await heldBack();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Modified", "a", 17, { spec: { n: 2 } }));
    await first.clock.advance(1_000);
    expect(first.runner.told).toEqual(["Modified a@17"]);
    const it = await first.restart(options);
    it.runner.deliveries.length = 0;
    for (let rv = 12; rv <= 16; rv++) it.subscription.change(change("Modified", "a", rv, { spec: { n: 1, rv } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual([]);
  });

  it("is written with an end in good order, with its position", async () => {
    const it = await heldBack();
    it.subscription.bookmark(resourceVersion("20"));
    expect(await it.drain()).toBe(true);
    expect(await onRecord(it)).toEqual({ rows: ["16"], mark: "20" });
  });

  it("is written when its function is removed, so that it finds it when it comes back", async () => {
    const it = await heldBack();
    await it.dispatcher.remove("copy", { retire: false });
    expect((await onRecord(it)).rows).toEqual(["16"]);
  });

  it("is written with the next commit where a condition compares with the object before", async () => {
    const matchConditions = [{ name: "c", expression: "object.spec.n != oldObject.spec.n" }];
    const store = new NotingStore(new MemoryDisk());
    await heldBack({ store, manifest: manifest({}, [trigger({ matchConditions })]) });
    expect(store.rows).toEqual(["11", "16"]);
  });
});

it("of which another source tells rests behind no change of the source before: that one's position says nothing of it", () => {
  const rows = new RestingRows();
  const hold = (owner: object) => ({ owner, ended: () => {} });
  const identity = { uid: "u", resourceVersion: resourceVersion("5"), hash: "", deleted: false, matched: true };
  const [left, came] = [{}, {}];
  const put = (owner: object) => rows.put(1, "team-a/a", 0, { identity, hasBody: false, hold: hold(owner) });
  expect([put(left), put(left), put(came)]).toEqual(["held", "behind", undefined]);
});
