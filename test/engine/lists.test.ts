import { describe, expect, it, onTestFinished } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { WorkingClock } from "../busy-clock.ts";
import { settle } from "../virtual-clock.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "./fixture.ts";

const many = (count: number, rv: number) =>
  Array.from({ length: count }, (_, index) => change("Added", `n${index}`, rv + index));

describe("a first list", () => {
  it("reaches handlers while it is read, and is no position before its end", async () => {
    const it = await DispatchFixture.open();
    const receiver = it.subscription.list("initial", undefined);
    receiver.item(change("Added", "a", 5));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5"]);
    expect(it.runner.deliveries[0]?.flags).toEqual({ initial: true });
    expect([it.subscription.lowWaterMark, it.function.status().ready]).toEqual([undefined, false]);
    receiver.item(change("Added", "b", 3));
    receiver.end(resourceVersion("9"));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@5", "Added b@3"]);
    expect(it.subscription.lowWaterMark).toBe("9");
  });

  it("is a position at its end, though something of it waits: that is on disk by then", async () => {
    const it = await DispatchFixture.open();
    it.runner.answer = () => undefined;
    const receiver = it.subscription.list("initial", undefined);
    receiver.item(change("Added", "a", 5));
    await quiet(it.runner);
    expect([it.subscription.lowWaterMark, it.disk.spill.size]).toEqual([undefined, 0]);
    receiver.end(resourceVersion("9"));
    await quiet(it.runner);
    expect([it.subscription.lowWaterMark, it.disk.spill.size]).toEqual(["9", 1]);
    await it.runner.end("a");
    await it.clock.advance(1000);
    expect([it.subscription.lowWaterMark, it.disk.spill.size]).toEqual(["9", 0]);
  });

  it("whose record another replica's store refuses leaves the process its orderly end", async () => {
    const it = await DispatchFixture.open();
    const unheard: unknown[] = [];
    const hear = (reason: unknown) => void unheard.push(reason);
    process.on("unhandledRejection", hear);
    onTestFinished(() => void process.off("unhandledRejection", hear));
    it.store.sync = () => Promise.reject(new WatchfireError("WF_CHECKPOINT_FENCED", { what: "by another" }));
    await it.listed();
    // Node reports it once the microtasks are done.
    await new Promise((resolve) => setImmediate(resolve));
    expect([unheard, it.function.status().ready]).toEqual([[], false]);
  });

  it("that breaks off leaves no position, and what it brought is not told again but for what changed since", async () => {
    const it = await DispatchFixture.open();
    const half = it.subscription.list("initial", undefined);
    for (const item of [change("Added", "a", 5), change("Added", "b", 6), change("Added", "c", 7)]) half.item(item);
    half.abort();
    await quiet(it.runner);
    expect(it.subscription.lowWaterMark).toBe(undefined);
    const again = [change("Added", "a", 5), change("Added", "b", 12), change("Added", "d", 13)];
    await it.list(20, again, "initial");
    await quiet(it.runner);
    expect(it.runner.told.slice(0, 3)).toEqual(["Added a@5", "Added b@6", "Added c@7"]);
    expect(it.runner.told.slice(3).sort()).toEqual(["Added d@13", "Deleted c@7", "Modified b@12"]);
    expect(it.subscription.lowWaterMark).toBe("20");
  });

  it("that a kill breaks off is not told again but for what had not ended, flagged", async () => {
    const it = await DispatchFixture.open();
    it.runner.answer = ({ object }) => (object.name === "b" ? undefined : done);
    const half = it.subscription.list("initial", undefined);
    for (const item of [change("Added", "a", 5), change("Added", "b", 6)]) half.item(item);
    await quiet(it.runner);
    await it.clock.advance(1000);
    const next = await it.restart();
    next.runner.answer = () => done;
    await next.list(20, [change("Added", "a", 5), change("Added", "b", 6), change("Added", "c", 7)], "initial");
    await quiet(next.runner);
    expect(next.runner.told).toEqual(["Added a@5", "Added b@6", "Added c@7", "Added b@6 #2 !"]);
    expect(next.subscription.lowWaterMark).toBe("20");
  });

  it("that is skipped is known as it is read", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({}, [trigger({ initialEvents: "Skip" })]) });
    const receiver = it.subscription.list("initial", undefined);
    for (const item of many(300, 5)) receiver.item(item);
    await it.clock.advance(1000);
    expect([...it.disk.views.values()][0]?.known.size).toBe(300);
    receiver.end(resourceVersion("400"));
    await quiet(it.runner);
    expect(it.runner.told).toEqual([]);
    expect(it.subscription.lowWaterMark).toBe("400");
  });
});

describe("with what is there skipped, what comes while a first list is read again is news", () => {
  const skips = { manifest: manifest({}, [trigger({ initialEvents: "Skip" })]) };

  it("such as an object that took a known name over", async () => {
    const it = await DispatchFixture.open(skips);
    const half = it.subscription.list("initial", undefined);
    half.item(change("Added", "a", 5));
    half.abort();
    await it.list(20, [change("Added", "a", 15, { uid: "second" }), change("Added", "b", 6)], "initial");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Deleted a@5", "Added a@15"]);
    await it.list(30, [change("Added", "a", 15, { uid: "second" }), change("Added", "b", 6)]);
    await quiet(it.runner);
    expect(it.runner.told).toHaveLength(2);
  });
});

describe("a list after a gap", () => {
  it("is told once it is complete, deletions first", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) });
    await it.list(9, [change("Added", "a", 5), change("Added", "b", 6)], "initial");
    await quiet(it.runner);
    const receiver = it.subscription.list("relist", resourceVersion("9"));
    receiver.item(change("Added", "c", 15));
    receiver.item(change("Added", "b", 12));
    await quiet(it.runner);
    expect(it.runner.told).toHaveLength(2);
    receiver.end(resourceVersion("20"));
    await quiet(it.runner);
    expect(it.runner.told.slice(2)).toEqual(["Deleted a@5", "Modified b@12", "Added c@15"]);
  });

  it("with many differences gives way to other work every 10 ms, and live changes wait behind it", async () => {
    const it = await DispatchFixture.open({ clock: new WorkingClock(), manifest: manifest({ concurrency: 1 }) });
    it.runner.answer = () => undefined;
    await it.list(1, [], "initial");
    const receiver = it.subscription.list("relist", resourceVersion("1"));
    for (const item of many(1000, 10)) receiver.item(item);
    expect(receiver.end(resourceVersion("2000"))).toBe("counted");
    it.subscription.change(change("Modified", "n1", 2001));
    it.subscription.bookmark(resourceVersion("2002"));
    const taken = [accepted(it)];
    while (it.subscription.congested && taken.length < 1000) {
      await new Promise((resolve) => setImmediate(resolve));
      taken.push(accepted(it));
    }
    expect(taken.at(-1)).toBe(1001);
    const inOneTurn = taken.map((count, turn) => count - (taken[turn - 1] ?? 0));
    // Each event takes at least a millisecond of this clock.
    expect(Math.max(...inOneTurn)).toBeLessThanOrEqual(11);
    expect(it.subscription.lowWaterMark).toBe("2002");
    it.runner.answer = () => done;
    await it.runner.end("n0");
    // The queue on disk is read back in time slices, each of which takes milliseconds of this clock.
    await it.clock.advance(1_000);
    expect(it.runner.told.filter((told) => told.includes(" n1@"))).toEqual(["Added n1@11", "Modified n1@2001"]);
    expect(it.subscription.lowWaterMark).toBe("2002");
  });

  it("is on the function's account by its length, and a short one is not", async () => {
    const it = await DispatchFixture.open();
    await it.list(2_000, many(200, 10), "initial");
    expect(it.function.status().parentSeconds.get("lists")).toBeUndefined();
    await it.list(3_000, many(1_000, 10));
    expect(it.function.status().parentSeconds.get("lists")).toBeCloseTo(0.001_5, 4);
  });

  it("that follows at once finds the one before told to its end", async () => {
    const it = await DispatchFixture.open({ clock: new WorkingClock(), manifest: manifest({ concurrency: 1 }) });
    await it.list(1, [], "initial");
    const first = it.subscription.list("relist", resourceVersion("1"));
    for (const item of many(100, 10)) first.item(item);
    first.end(resourceVersion("200"));
    const second = it.subscription.list("relist", resourceVersion("200"));
    for (const item of many(100, 10)) second.item(item);
    second.end(resourceVersion("300"));
    while (it.subscription.congested) await settle();
    await quiet(it.runner);
    expect(it.runner.told).toHaveLength(100);
    expect(it.subscription.lowWaterMark).toBe("300");
  });
});

describe("a list after a gap of more than may wait in memory", () => {
  const spec = "x".repeat(1 << 20);
  const large = (rv: number) => Array.from({ length: 20 }, (_, n) => change("Modified", `n${n}`, rv + n, { spec }));

  /** Waits until every event is delivered: writing large bodies is charged, so the events are delivered in turns. */
  async function allTold(it: DispatchFixture): Promise<void> {
    for (let turns = 0; turns < 20; turns++) {
      await it.clock.advance(50);
      await quiet(it.runner);
    }
  }

  async function known(): Promise<DispatchFixture> {
    const it = await DispatchFixture.open({ manifest: manifest({ concurrency: 1 }) });
    await it.list(100, [...many(20, 5), change("Added", "gone", 50)], "initial");
    await quiet(it.runner);
    it.runner.deliveries.length = 0;
    return it;
  }

  it("is told as it is read, what is gone at its end, and is a position then", async () => {
    const it = await known();
    const receiver = it.subscription.list("relist", resourceVersion("100"));
    for (const item of large(200)) receiver.item(item);
    await allTold(it);
    expect(it.runner.told).toEqual(large(200).map(({ meta }) => `Modified ${meta.name}@${meta.resourceVersion}`));
    expect(it.runner.deliveries[3]?.flags).toEqual({
      synthetic: true,
      reason: "relist",
      gap: { from: "100", to: "203" },
    });
    expect(it.subscription.lowWaterMark).toBe("100");
    receiver.end(resourceVersion("300"));
    await allTold(it);
    expect([it.runner.told.at(-1), it.subscription.lowWaterMark]).toEqual(["Deleted gone@50", "300"]);
  });

  it("is followed by a list alone where it breaks off, which tells of the rest", async () => {
    const it = await known();
    const half = it.subscription.list("relist", resourceVersion("100"));
    for (const item of large(200).slice(0, 18)) half.item(item);
    half.abort();
    await allTold(it);
    expect([it.runner.told.length, it.subscription.resumeFrom]).toEqual([18, undefined]);
    await it.list(300, large(200));
    await allTold(it);
    expect(it.runner.told.slice(18)).toEqual(["Deleted gone@50", "Modified n18@218", "Modified n19@219"]);
    expect(it.subscription.resumeFrom).toBe("300");
  });
});

function accepted(it: DispatchFixture): number {
  const { queued, inFlight, spilled } = it.function.status();
  return queued + inFlight + spilled;
}
