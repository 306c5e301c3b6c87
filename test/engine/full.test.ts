import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Subscription } from "../../runtime/engine/intake/subscription.ts";
import { Members } from "../../runtime/informer/fanout/members.ts";
import type { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "./fixture.ts";

/** A disk with limited room for waiting events. */
class SmallStore extends MemoryStore {
  constructor(disk: MemoryDisk | undefined, spillLimit: number, holdsQueues: boolean) {
    super(disk, { spillLimit, holdsQueues });
  }
}

/** Makes the holder of a subscription's place, which counts when the place is given up and wanted back. */
function placeFor(subscription: Subscription) {
  const place = { left: 0, wanted: 0 };
  subscription.placed({
    stepAside: (room) => {
      place.left++;
      void room().then(() => {
        place.wanted++;
      });
    },
  });
  return place;
}

/**
 * Ends handlers and advances time until nothing waits. Whenever the function has room again, the source continues by `feed`.
 */
async function catchUp(it: DispatchFixture, place: { readonly wanted: number }, feed: () => unknown): Promise<void> {
  for (let served = 0, seconds = 0; seconds < 1_000; seconds++) {
    for (const name of it.runner.open.keys()) await it.runner.end(name);
    await it.clock.advance(1_000);
    const { queued, inFlight, spilled } = it.function.status();
    if (place.wanted > served) {
      served = place.wanted;
      await feed();
    } else if (queued + inFlight + spilled === 0) return;
  }
}

const spec = "x".repeat(1_000);

/** Attempts of all functions wait in the handler, except those of `other`, which end at once. */
async function withNeighbour(store: MemoryStore) {
  const it = await (await DispatchFixture.open({ store, manifest: manifest({ concurrency: 1 }) })).listed();
  const neighbour = await it.dispatcher.function({ ...manifest(), name: "other" }, { usesOldObject: false });
  const other = neighbour.subscription("settings", { selection: "all", namespace: "" });
  other.list("initial", undefined).end(resourceVersion("1"));
  it.runner.answer = (delivery) => (delivery.function === "other" ? done : undefined);
  return { it, other };
}

describe("a function whose share of the disk is used up", () => {
  // Half of it may wait in memory.
  const roomy = 100_000;

  it("lets nothing pass once it takes no more: its position stands", async () => {
    const own = trigger({ matchConditions: [{ name: "own", expression: "object.spec.of == 'x'" }] });
    const store = new SmallStore(undefined, roomy, true);
    const it = await (await DispatchFixture.open({ store, manifest: manifest({ concurrency: 1 }, [own]) })).listed();
    it.runner.answer = () => undefined;
    const place = placeFor(it.subscription);
    const stream = new Members();
    stream.join({ subscriber: it.subscription, at: resourceVersion("1") }, true);
    stream.cover(resourceVersion("1"));
    const write = (rv: number, of: string) =>
      stream.change(change("Added", `n${rv}`, rv, { spec: { of, text: spec } }));
    let rv = 11;
    for (; place.left === 0 && rv < 2_000; rv += 2) {
      write(rv, "x");
      write(rv + 1, "y");
      if (rv % 10 === 1) await it.clock.advance(1_000);
    }
    expect(place.left).toBe(1);
    // The subscription is asked for its checkpoint once it has been suspended, which takes a moment.
    const position = it.subscription.resumeFrom;
    for (const end = rv + 20; rv < end; rv++) write(rv, "y");
    it.subscription.cursor();
    expect(it.subscription.resumeFrom).toBe(position);
  });

  it("takes no more, its position stands, and the others on its source go on", async () => {
    const { it, other } = await withNeighbour(new SmallStore(undefined, roomy, true));
    const place = placeFor(it.subscription);
    for (let rv = 11; rv < 1_000; rv++) {
      for (const each of [it.subscription, other]) each.change(change("Added", `n${rv}`, rv, { spec }));
      if (rv % 10 === 0) await it.clock.advance(1_000);
    }
    it.subscription.bookmark(resourceVersion("2000"));
    await it.clock.advance(1_000);
    const { full, queued, inFlight, spilled } = it.function.status();
    expect([place.left, full]).toEqual([1, true]);
    expect((queued + inFlight + spilled) * 1_200).toBeLessThan(2 * roomy);
    expect(Number(it.subscription.resumeFrom)).toBeLessThan(11 + queued + inFlight + spilled);
    expect(it.subscription.congested).toBeUndefined();
    await quiet(it.runner);
    expect(it.runner.deliveries.filter((delivery) => delivery.function === "other")).toHaveLength(989);
  });

  it("takes nothing more before it has left, though it has room again by then", async () => {
    const { it } = await withNeighbour(new SmallStore(undefined, roomy, true));
    let room = async () => {};
    it.subscription.placed({
      stepAside: (given) => {
        room = given;
      },
    });
    for (let rv = 11; rv < 1_000; rv++) {
      it.subscription.change(change("Added", `n${rv}`, rv, { spec }));
      if (rv % 10 === 0) await it.clock.advance(1_000);
    }
    const stood = it.subscription.resumeFrom;
    await catchUp(it, { wanted: 0 }, () => {});
    it.subscription.bookmark(resourceVersion("2000"));
    expect([it.subscription.takes(), it.subscription.resumeFrom]).toEqual([false, stood]);
    await room();
    expect(it.subscription.takes()).toBe(true);
  });

  it("joins its source again where it stands once it has caught up, and is told of everything, once and in order", async () => {
    const { it } = await withNeighbour(new SmallStore(undefined, roomy, true));
    const place = placeFor(it.subscription);
    const feed = () => {
      for (let rv = Number(it.subscription.resumeFrom) + 1; rv < 600; rv++) {
        it.subscription.change(change("Added", `n${rv}`, rv, { spec }));
      }
    };
    feed();
    expect([place.left, place.wanted]).toEqual([1, 0]);
    it.runner.answer = () => done;
    await catchUp(it, place, feed);
    it.subscription.bookmark(resourceVersion("700"));
    await it.clock.advance(1_000);
    expect(place.left).toBe(place.wanted);
    const told = it.runner.deliveries.filter((delivery) => delivery.function === "copy" && !delivery.redelivered);
    expect(told.map((delivery) => Number(delivery.resourceVersion))).toEqual(
      Array.from({ length: 598 }, (_, n) => n + 2),
    );
    expect(it.subscription.lowWaterMark).toBe("700");
  });

  it("in the midst of a list is told of the rest by the next one", async () => {
    const { it } = await withNeighbour(new SmallStore(undefined, roomy, true));
    const place = placeFor(it.subscription);
    const objects = Array.from({ length: 400 }, (_, n) => change("Added", `n${n}`, 100 + n, { spec }));
    await it.list(1_000, objects);
    expect([place.left, it.subscription.resumeFrom]).toEqual([1, undefined]);
    it.runner.answer = () => done;
    await catchUp(it, place, () => it.list(1_000, objects, "initial"));
    const names = it.runner.deliveries.filter(({ redelivered }) => !redelivered).map(({ object }) => object.name);
    expect([names.length, new Set(names).size, it.subscription.lowWaterMark]).toEqual([400, 400, "1000"]);
  });

  it("finds what it had used when it starts again, so that no kill lets it have more", async () => {
    const { it } = await withNeighbour(new SmallStore(undefined, roomy, true));
    placeFor(it.subscription);
    for (let rv = 11; rv < 600; rv++) it.subscription.change(change("Added", `n${rv}`, rv, { spec }));
    await it.clock.advance(1_000);
    const { disk } = it.store as MemoryStore;
    const { size } = disk.spill;
    expect(size).toBeGreaterThan(20);
    const again = await it.restart({ store: new SmallStore(disk, roomy, true) });
    again.runner.answer = () => undefined;
    placeFor(again.subscription);
    for (let rv = 600; rv < 1_200; rv++) again.subscription.change(change("Added", `n${rv}`, rv, { spec }));
    await it.clock.advance(1_000);
    expect(disk.spill.size).toBeLessThan(size + 20);
  });
});

describe("where queues wait in memory alone", () => {
  const small = () => new SmallStore(undefined, 4 << 20, false);

  it("a first list of more than fits is not held whole: the rest is told of by the next list", async () => {
    const it = await DispatchFixture.open({ store: small(), manifest: manifest({ concurrency: 1 }) });
    it.runner.answer = () => undefined;
    const place = placeFor(it.subscription);
    const list = it.subscription.list("initial", undefined);
    for (let n = 0; n < 30_000; n++) {
      while (it.subscription.congested) await it.clock.advance(100);
      list.item(change("Added", `n${n}`, 10 + n, { spec }));
    }
    expect(list.end(resourceVersion("50000"))).toBe("held");
    const { queued, inFlight, spilled } = it.function.status();
    expect([place.left, queued + inFlight < 1_000, spilled]).toEqual([1, true, 0]);
  });

  it("one function's stuck object holds its source up for a moment, and neither function for good", async () => {
    const { it, other } = await withNeighbour(small());
    const place = placeFor(it.subscription);
    let heldMs = 0;
    for (let rv = 11; rv < 3_000; rv++) {
      for (; it.subscription.congested && heldMs < 5_000; heldMs += 100) await it.clock.advance(100);
      for (const each of [it.subscription, other]) each.change(change("Modified", "hot", rv, { spec }));
      if (rv % 100 === 0) await quiet(it.runner);
    }
    await quiet(it.runner);
    expect([place.left, place.wanted]).toEqual([0, 0]);
    expect(heldMs).toBeLessThanOrEqual(1_000);
    expect(it.runner.deliveries.filter((delivery) => delivery.function === "other")).toHaveLength(2_989);
  });
});
