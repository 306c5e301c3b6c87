import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Subscription } from "../../runtime/engine/intake/subscription.ts";
import { Backpressure } from "../../runtime/engine/work/backpressure.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, done, manifest, quiet } from "./fixture.ts";

/**
 * A source that functions share, which waits for each congested subscriber. Returns the length of the last wait in milliseconds.
 */
async function feed(
  it: DispatchFixture,
  subscriptions: readonly Subscription[],
  from: number,
  to: number,
): Promise<number> {
  let heldMs = 0;
  for (let rv = from; rv < to; rv++) {
    for (let waitedMs = 0; subscriptions.some(({ congested }) => congested); waitedMs++) {
      if (waitedMs > 60_000) throw new Error(`the source of change ${rv} is held for more than a minute`);
      if (subscriptions.at(-1)?.congested) heldMs++;
      await it.clock.advance(1);
    }
    for (const subscription of subscriptions) subscription.change(change("Added", `n${rv}`, rv));
  }
  return heldMs;
}

async function withSlow() {
  const it = await (await DispatchFixture.open()).listed();
  const slow = await it.dispatcher.function({ ...manifest(), name: "slow" }, { usesOldObject: false });
  const other = slow.subscription("settings", { selection: "all", namespace: "" });
  other.list("initial", undefined).end(resourceVersion("1"));
  return { it, slow, other };
}

/** Makes every attempt of the function take so many milliseconds; attempts of others end at once. */
function pace(it: DispatchFixture, name: string, ms: number): void {
  it.runner.answer = (delivery) =>
    delivery.function === name ? new Promise((resolve) => it.clock.after(ms, () => resolve(done))) : done;
}

describe("a function that is behind", () => {
  it("and gets on quickly is waited for, and nothing of it goes to disk", async () => {
    const it = await (await DispatchFixture.open({ manifest: manifest({ concurrency: 64 }) })).listed();
    pace(it, "copy", 1);
    expect(await feed(it, [it.subscription], 11, 20_000)).toBeGreaterThan(100);
    expect(it.function.status().spilled).toBe(0);
    await it.clock.advance(1_000);
    expect(it.outcomes.get("ok")).toBe(19_989);
  });

  it("and slow stalls neither its source nor another function", async () => {
    const { it, slow, other } = await withSlow();
    it.runner.answer = (delivery) => (delivery.function === "slow" ? undefined : done);
    expect(await feed(it, [it.subscription, other], 11, 3_000)).toBe(500);
    expect(slow.status()).toMatchObject({ inFlight: 4, queued: 996, spilled: 1_989 });
    await quiet(it.runner);
    expect(it.runner.deliveries.filter((delivery) => delivery.function === "copy")).toHaveLength(2_989);
  });

  it("holds its source up no second time while it stays slow", async () => {
    const { it, slow, other } = await withSlow();
    pace(it, "slow", 10);
    await feed(it, [it.subscription, other], 11, 2_000);
    await it.clock.advance(60_000);
    expect(slow.status()).toMatchObject({ inFlight: 0, queued: 0, spilled: 0 });
    expect(await feed(it, [it.subscription, other], 2_000, 4_000)).toBe(0);
  });

  it("is waited for again once it is quick again, and what is on disk comes first", async () => {
    const { it, slow, other } = await withSlow();
    it.runner.answer = (delivery) => (delivery.function === "slow" ? undefined : done);
    await feed(it, [other], 11, 3_000);
    it.runner.answer = () => done;
    for (let rv = 11; rv < 15; rv++) await it.runner.end(`n${rv}`);
    pace(it, "slow", 1);
    await feed(it, [other], 3_000, 6_000);
    await it.clock.advance(600);
    expect(await feed(it, [other], 6_000, 20_000)).toBeGreaterThan(100);
    await it.clock.advance(20_000);
    expect(slow.status()).toMatchObject({ queued: 0, spilled: 0 });
    const told = it.runner.deliveries.filter((delivery) => delivery.function === "slow");
    expect(told.map((delivery) => Number(delivery.resourceVersion))).toEqual(
      Array.from({ length: 19_989 }, (_, index) => 11 + index),
    );
  });

  it("lets its source go once its memory is free, also where what filled it waits for a retry and does not end", async () => {
    const clock = new VirtualClock();
    const room = { fill: 1, diskFill: 0, onDisk: 0, isSpent: false, holdsQueues: true };
    const backpressure = new Backpressure(
      clock,
      room,
      { events: 4, bytes: 1_000 },
      {
        ready: { length: 4 },
        share: { readyLimit: Number.POSITIVE_INFINITY, time: { isOverShare: false } },
      },
    );
    const { congested } = backpressure;
    expect(congested).toBeInstanceOf(Promise);
    for (let ended = 0; ended < 4; ended++) backpressure.left(1);
    room.fill = 0.25;
    await clock.advance(500);
    await congested;
    expect(backpressure.congested).toBeUndefined();
  });

  /** A function that may hold 1000 events, with so many ready keys and so many allowed ones. */
  function sharing({ length = 20, share = 20, fill = 0.02, isOverShare = false, holdsQueues = true } = {}) {
    const clock = new VirtualClock();
    const room = { fill, diskFill: 0, onDisk: 0, isSpent: false, holdsQueues };
    const turn = { ready: { length }, share: { readyLimit: share, time: { isOverShare } } };
    const backpressure = new Backpressure(clock, room, { events: 1_000, bytes: 1_000_000 }, turn);
    return { clock, room, turn, backpressure };
  }

  it("holds its source up from its share of ready lanes on, and lets it go at seven tenths of that", async () => {
    const { clock, turn, backpressure } = sharing({ length: 19 });
    expect(backpressure.congested).toBeUndefined();
    turn.ready.length = 20;
    let isHeld = true;
    void backpressure.congested?.then(() => {
      isHeld = false;
    });
    const moved = async (length: number) => {
      turn.ready.length = length;
      backpressure.moved();
      await clock.advance(0);
      return isHeld;
    };
    expect([await moved(15), await moved(14)]).toEqual([true, false]);
  });

  it.each([
    ["gets through half of what it may hold", 500, { fill: 0.5, length: 0 }, true],
    ["gets through less", 499, { fill: 0.5, length: 19 }, false],
    ["gets through less, because others have their turn", 0, {}, true],
    ["waits for its turn, and has more on disk", 499, { fill: 1 }, false],
  ])("is one that %s in half a second: its source waits again, or not", async (_, ended, over, isHeld) => {
    const { clock, backpressure } = sharing(over);
    expect(backpressure.congested).toBeInstanceOf(Promise);
    for (let event = 0; event < ended; event++) backpressure.left(1);
    await clock.advance(500);
    expect(backpressure.congested !== undefined).toBe(isHeld);
  });

  describe("and over its share of the parent's time", () => {
    const over = { fill: 0.5, length: 0, isOverShare: true };

    it("holds nobody up, and lets go of who waits for it already", async () => {
      const { turn, backpressure } = sharing({ ...over, isOverShare: false });
      const { congested } = backpressure;
      expect(congested).toBeInstanceOf(Promise);
      turn.share.time.isOverShare = true;
      backpressure.moved();
      await congested;
      expect(backpressure.congested).toBeUndefined();
    });

    it.each([
      [499, false],
      [500, true],
    ])(
      "is waited for once it is seen to get through enough all the same: %d events in half a second",
      async (ended, isHeld) => {
        const { clock, backpressure } = sharing(over);
        expect(backpressure.congested).toBeUndefined();
        for (let event = 0; event < ended; event++) backpressure.left(1);
        await clock.advance(500);
        expect(backpressure.congested !== undefined).toBe(isHeld);
      },
    );

    it("accepts nothing while it has more on disk than it may have in memory, until half of that has ended", async () => {
      const { room, turn, backpressure } = sharing(over);
      room.onDisk = 999_999;
      expect(backpressure.full()).toBeUndefined();
      room.onDisk = 1_000_000;
      turn.share.time.isOverShare = false;
      expect(backpressure.full()).toBeUndefined();
      turn.share.time.isOverShare = true;
      const full = backpressure.full();
      expect(full).toBeInstanceOf(Promise);
      room.onDisk = 500_001;
      backpressure.left(1);
      expect(backpressure.isFull).toBe(true);
      room.onDisk = 500_000;
      backpressure.left(1);
      await full;
      expect(backpressure.full()).toBeUndefined();
    });

    it("holds its source up where there is no disk, before it would have to step aside", () => {
      const of = { ...over, holdsQueues: false };
      expect(sharing({ ...of, fill: 0.7 }).backpressure.congested).toBeUndefined();
      expect(sharing({ ...of, fill: 0.75 }).backpressure.congested).toBeInstanceOf(Promise);
    });
  });

  it("lets its source go when it stops", async () => {
    const { it, slow, other } = await withSlow();
    it.runner.answer = () => undefined;
    for (let rv = 11; rv < 1_000; rv++) other.change(change("Added", `n${rv}`, rv));
    const { congested } = other;
    expect(congested).toBeInstanceOf(Promise);
    void slow.stop();
    await congested;
    expect(other.congested).toBeUndefined();
  });
});
