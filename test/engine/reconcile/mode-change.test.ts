import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { mostRows } from "../../../runtime/engine/commit/commit-share.ts";
import type { Batch } from "../../../runtime/journal/batch.ts";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../../journal/memory-store.ts";
import { change, type DispatchFixture, done, failure, manifest, quiet, trigger } from "../fixture.ts";
import { open, owned, pods, reconciler, runs, withPods } from "./fixture.ts";

describe("a key", () => {
  const events = manifest({}, [trigger(), pods(undefined)]);

  /** The keys of an object and of its Pod wait, because their handler fails. */
  async function failing() {
    const fixture = await open();
    fixture.runner.answer = () => failure();
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    await fixture.clock.advance(500);
    return fixture;
  }

  /** The Pod on the API server. */
  const webAt = (rv: number) => {
    const { meta, body } = owned("Modified", "web", rv, "shop");
    return { ...meta, body };
  };

  it("that waits when its function takes events again comes as events of the objects that woke it, whole and flagged", async () => {
    const first = await failing();
    first.runner.deliveries.length = 0;
    first.runner.answer = () => done;
    // Only the Pods' metadata was kept, which contains their owners.
    const look = async () => webAt(12);
    const second = await withPods(await first.restart({ manifest: events, look }), false);
    await second.clock.advance(1_000);
    const told = second.runner.deliveries.map(({ id, redelivered, flags, body }) => {
      const { metadata, spec } = JSON.parse(body.toString());
      return [id, redelivered, flags.reason, metadata.name, spec.rv];
    });
    expect(told.toSorted()).toEqual([
      ["pods:uid-web/12/Added", true, "edited", "web", 12],
      ["settings:uid-shop/11/Added", true, "edited", "shop", 11],
    ]);
    expect([second.disk.spill.size, second.disk.begun.size]).toEqual([0, 0]);
  });

  it("that comes as an event of its object as it stands now flags that state's own event, across a kill as well", async () => {
    const first = await failing();
    first.runner.answer = () => done;
    const look = async () => webAt(15);
    const second = await withPods(await first.restart({ manifest: events, look }), false);
    await second.clock.advance(1_000);
    second.pods.change(owned("Modified", "web", 14, "shop"));
    await second.clock.advance(1_000);
    expect(second.runner.told.filter((line) => line.includes("web"))).toEqual(["Added web@12 !", "Modified web@14 !"]);
    second.runner.deliveries.length = 0;
    const third = await withPods(await second.restart({ manifest: events, look }), false);
    for (const rv of [15, 16]) third.pods.change(owned("Modified", "web", rv, "shop"));
    await third.clock.advance(1_000);
    expect(third.runner.told).toEqual(["Modified web@15 !", "Modified web@16"]);
    expect(third.disk.begun.size).toBe(0);
  });

  it("that comes so, and is asked for again and again, leaves one record of the state that it has shown", async () => {
    const first = await failing();
    first.runner.answer = ({ object }) => (object.name === "web" ? { ...done, requeueAfterMs: 1_000 } : done);
    first.runner.deliveries.length = 0;
    const look = async () => webAt(15);
    const second = await withPods(await first.restart({ manifest: events, look }), false);
    await second.clock.advance(20_000);
    expect(second.runner.deliveries.length).toBeGreaterThan(10);
    expect(second.disk.begun.size).toBeLessThanOrEqual(2);
  });

  it("that has not run is told without a flag, and one that its handler asked for at a time comes at that time", async () => {
    const first = await open();
    first.runner.answer = ({ object }) => (object.name === "late" ? { ...done, requeueAfterMs: 3_600_000 } : undefined);
    first.subscription.change(change("Added", "late", 11));
    await quiet(first.runner);
    first.dispatcher.hold("copy", "command");
    first.subscription.change(change("Added", "shop", 12));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => done;
    const second = await withPods(await first.restart({ manifest: events }), false);
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added shop@12"]);
    await second.clock.advance(3_600_000);
    expect(second.runner.told.slice(1)).toEqual(["Modified late@11 !"]);
  });

  it("that more objects woke than its row names comes as events of all that count for it, flagged", async () => {
    const first = await open();
    first.runner.answer = ({ object }) => (object.name === "shop" ? failure() : done);
    first.subscription.change(change("Added", "shop", 11));
    const names = Array.from({ length: 20 }, (_, index) => `web-${index}`);
    for (const [index, name] of names.entries()) first.pods.change(owned("Added", name, 12 + index, "shop"));
    first.pods.change(owned("Added", "other", 40, "another"));
    await quiet(first.runner);
    await first.clock.advance(500);
    first.runner.deliveries.length = 0;
    first.runner.answer = () => done;
    const look = async (_: string, __: string, { name }: { name: string }) => {
      const { meta, body } = owned("Modified", name, 40, "shop");
      return { ...meta, body };
    };
    const second = await withPods(await first.restart({ manifest: events, look }), false);
    await second.clock.advance(1_000);
    expect(second.runner.deliveries.every(({ redelivered }) => redelivered)).toBe(true);
    const told = second.runner.deliveries.map(({ object }) => object.name);
    expect(told.toSorted()).toEqual(["shop", ...names].toSorted());
    expect(second.warnings).toMatchObject([{ function: "copy", keys: 1 }]);
  });

  it("whose object is gone comes as its deletion, with the object's own uid", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.runner.answer = () => failure();
    first.subscription.change(change("Deleted", "shop", 12));
    await quiet(first.runner);
    first.subscription.bookmark(resourceVersion("20"));
    await first.clock.advance(100);
    first.runner.answer = () => done;
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: events }), false);
    await second.clock.advance(1_000);
    expect(second.runner.deliveries.map(({ type, object, redelivered }) => [type, object.uid, redelivered])).toEqual([
      ["Deleted", "uid-shop", true],
    ]);
  });

  it("stands for the events that wait when its function begins to reconcile", async () => {
    const events = manifest({ onFailure: "Block" }, [trigger(), pods(undefined)]);
    const first = await open({ manifest: events });
    first.runner.answer = () => failure();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(100_000);
    expect(first.disk.spill.size).toBe(1);
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: reconciler() });
    await second.clock.advance(1_000);
    expect(runs(second).at(-1)).toBe("shop@11 <- Added settings shop !");
    expect(second.disk.spill.size).toBe(0);
  });

  it("whose event a handler was told of before the function reconciled comes flagged once it does not any more", async () => {
    const events = manifest({ onFailure: "Block" }, [trigger(), pods(undefined)]);
    const first = await open({ manifest: events });
    first.runner.answer = () => failure();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(100_000);
    first.runner.answer = () => done;
    const held = {
      opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
    };
    const second = await first.restart({ manifest: reconciler(), ...held });
    await second.clock.advance(1_000);
    expect([...second.disk.spill.values()].map((row) => row.kind === "key" && row.pending.causes.length)).toEqual([1]);
    second.runner.deliveries.length = 0;
    const third = await second.restart({ manifest: events });
    await third.clock.advance(1_000);
    expect(third.runner.told).toEqual(["Added shop@11 !"]);
  });

  it("is woken by the same objects after an edit to another mode and back, however often", async () => {
    const held = {
      opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
      look: async () => webAt(12),
    };
    const first = await open({ ...held });
    first.pods.change(owned("Added", "web", 12, "shop"));
    await first.clock.advance(1_000);
    let it = first as DispatchFixture;
    for (const to of [events, reconciler(), events, reconciler()]) {
      it = await it.restart({ manifest: to, ...held });
      await it.clock.advance(1_000);
    }
    const { opened: _, ...free } = held;
    const last = await it.restart({ manifest: events, ...free });
    await last.clock.advance(1_000);
    expect(last.runner.deliveries.map(({ id }) => id)).toEqual(["pods:uid-web/12/Added"]);
  });
});

describe("the keys of many objects", () => {
  const events = manifest({ concurrency: 1_000 }, [trigger(), pods(undefined)]);
  const count = 500;

  /** A store whose process ends after so many commits: later ones are lost. */
  class EndingStore extends MemoryStore {
    readonly sizes: number[] = [];
    private readonly most: number;

    constructor(disk: MemoryDisk, most: number) {
      super(disk);
      this.most = most;
    }

    override async commit(batch: Batch): Promise<readonly string[]> {
      this.sizes.push(batch.spill.length + batch.unspill.length);
      return this.sizes.length > this.most ? [] : super.commit(batch);
    }
  }

  /** Keys that wait and have never run. */
  async function waiting() {
    const disk = new MemoryDisk();
    const fixture = await open({ disk, manifest: reconciler({ concurrency: 1 }) });
    fixture.runner.answer = () => undefined;
    for (let rv = 11; rv < 11 + count; rv++) fixture.subscription.change(change("Added", `shop-${rv}`, rv));
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    return { fixture, disk };
  }

  it("come as their events in commits that are none of them long, and in turns of the event loop", async () => {
    const { fixture, disk } = await waiting();
    const store = new EndingStore(disk, Number.POSITIVE_INFINITY);
    const second = await fixture.restart({ store, manifest: events });
    expect(Math.max(...store.sizes)).toBeLessThanOrEqual(mostRows + 1);
    expect(store.sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(2 * count);
    second.runner.answer = () => done;
    await second.clock.advance(10_000);
    expect(new Set(second.runner.deliveries.map(({ object }) => object.name)).size).toBe(count);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "are all told where the process ends after commit %i of that, and none twice without a flag",
    async (commits) => {
      const { fixture, disk } = await waiting();
      const ended = await fixture.restart({ store: new EndingStore(disk, commits), manifest: events });
      ended.kill();
      ended.runner.deliveries.length = 0;
      ended.runner.answer = () => done;
      const third = await ended.restart({ disk, manifest: events });
      await third.clock.advance(10_000);
      const told = third.runner.deliveries.filter(({ redelivered }) => !redelivered);
      expect(new Set(third.runner.deliveries.map(({ object }) => object.name)).size).toBe(count);
      expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
      expect(told.length).toBeGreaterThanOrEqual(count - 1);
      expect(disk.spill.size).toBe(0);
    },
  );
});
