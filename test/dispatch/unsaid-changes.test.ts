import { describe, expect, it } from "vitest";
import type { Batch } from "../../runtime/checkpoint/batch.ts";
import { type MemoryDisk, MemoryStore } from "../../runtime/checkpoint/memory.ts";
import { resourceVersion } from "../../runtime/resource-version.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";

/** Notes what is written of objects: their resourceVersions, with `+` where a body is written with it. */
class NotingStore extends MemoryStore {
  readonly written: string[] = [];

  override commit(batch: Batch): Promise<readonly string[]> {
    for (const { key } of batch.bodies) this.written.push(`${key}+`);
    for (const { state } of batch.known) {
      if (state) this.written.push(`${state.resourceVersion}${state.body instanceof Uint8Array ? "+" : ""}`);
    }
    return super.commit(batch);
  }
}

const onField = (field: string): DispatchOptions => ({
  manifest: manifest({}, [trigger({ changedFields: [["spec", field]] })]),
});
const wanted = onField("n");

/** An object that was added, and then changed up to a resourceVersion, a second each, in nothing that is looked at. */
async function unsaid(upTo: number, options: DispatchOptions = wanted): Promise<DispatchFixture> {
  const it = await (await DispatchFixture.open(options)).listed();
  it.subscription.change(change("Added", "a", 11, { spec: { n: 1, m: 11 } }));
  await it.clock.advance(1_000);
  for (let rv = 12; rv <= upTo; rv++) {
    it.subscription.change(change("Modified", "a", rv, { spec: { n: 1, m: rv % 2 } }));
    it.subscription.bookmark(resourceVersion(String(rv)));
    await it.clock.advance(1_000);
  }
  it.runner.deliveries.length = 0;
  return it;
}

const onRecord = (disk: MemoryDisk) =>
  [...disk.views.values()].flatMap(({ known }) => [...known.values()].map((each) => each.resourceVersion));

describe("changes that a filter keeps back, and that leave what it looks at as it was", () => {
  it("are put on record now and then, with a body once a minute", async () => {
    const store = new NotingStore();
    await unsaid(151, { ...wanted, store });
    expect(store.written.filter((each) => each.endsWith("+"))).toHaveLength(3);
    expect(store.written.length).toBeLessThanOrEqual(20);
  });

  it("are on record half a minute after the last of them, and at once after an end in good order", async () => {
    const quietly = await unsaid(20);
    expect(onRecord(quietly.disk)).toEqual(["12"]);
    await quietly.clock.advance(30_000);
    expect(onRecord(quietly.disk)).toEqual(["20"]);
    const ended = await unsaid(20);
    expect(await ended.drain()).toBe(true);
    expect(onRecord(ended.disk)).toEqual(["20"]);
  });

  it("are no changes of what it looks at, nor of what its conditions answer: those are on record at once", async () => {
    const conditions = [{ name: "few", expression: "object.spec.m < 100" }];
    const it = await unsaid(20, {
      manifest: manifest({}, [trigger({ changedFields: [["spec", "n"]], matchConditions: conditions })]),
    });
    it.subscription.change(change("Modified", "a", 21, { spec: { n: 1, m: 200 } }));
    await it.clock.advance(1_000);
    expect(onRecord(it.disk)).toEqual(["21"]);
    for (let rv = 22; rv < 25; rv++) {
      await it.clock.advance(10_000);
      it.subscription.change(change("Modified", "a", rv, { spec: { n: 1, m: 200 } }));
    }
    it.subscription.change(change("Modified", "a", 25, { spec: { n: 2, m: 200 } }));
    await it.clock.advance(1_000);
    expect(onRecord(it.disk)).toEqual(["25"]);
    expect(it.runner.told).toEqual([]);
  });

  it.each([
    ["Modified", ["21"]],
    ["Deleted", []],
  ] as const)("do not come on record after what followed them, such as a %s", async (type, left) => {
    const it = await unsaid(20);
    it.subscription.change(change(type, "a", 21, { spec: { n: 2, m: 0 } }));
    it.subscription.bookmark(resourceVersion("22"));
    await it.clock.advance(60_000);
    expect(it.runner.told).toEqual([`${type} a@21`]);
    expect(onRecord(it.disk)).toEqual(left);
  });

  it("are not told after a kill, neither by a list nor by the watch, and the next that counts is", async () => {
    const listing = await (await unsaid(20)).restart(wanted);
    await listing.list(30, [change("Added", "a", 20, { spec: { n: 1, m: 0 } })]);
    const watching = await (await unsaid(20)).restart(wanted);
    for (const it of [listing, watching]) {
      it.subscription.change(change("Modified", "a", 31, { spec: { n: 1, m: 31 } }));
      it.subscription.change(change("Modified", "a", 32, { spec: { n: 2, m: 31 } }));
      await quiet(it.runner);
      expect(it.runner.told).toEqual(["Modified a@32"]);
    }
  });

  it("give a deletion that is found no other id after a kill than before", async () => {
    const selective = manifest({}, [trigger({ changedFields: [["spec", "n"]], labelSelector: "app=web" })]);
    const first = await unsaid(20, { manifest: selective });
    first.runner.answer = () => undefined;
    await first.list(30, []);
    await quiet(first.runner);
    const second = await first.restart({ manifest: selective });
    await second.list(40, []);
    await quiet(second.runner);
    const [before, after] = second.runner.deliveries;
    expect(before?.type).toBe("Deleted");
    expect(after).toMatchObject({ id: before?.id, redelivered: true });
  });

  it("do not hide after a kill that the object is gone, where its deletion carries the last one's own resourceVersion", async () => {
    const it = await (await unsaid(20)).restart(wanted);
    it.subscription.change(change("Deleted", "a", 20, { spec: { n: 1, m: 0 } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Deleted a@20"]);
  });

  it("are no state that a field of an edited list is compared with, unless they are on record", async () => {
    const it = await (await unsaid(20)).restart(onField("m"));
    it.runner.deliveries.length = 0;
    // As the body on record has it, and unlike the state that was left out.
    it.subscription.change(change("Modified", "a", 31, { spec: { n: 1, m: 11 } }));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@31"]);
  });
});
