import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LoopTime } from "../../../runtime/engine/account/loop-time.ts";
import { mostRows } from "../../../runtime/engine/commit/commit-share.ts";
import { Resync } from "../../../runtime/engine/work/resync.ts";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import { BusyClock } from "../../busy-clock.ts";
import { MemoryStore } from "../../journal/memory-store.ts";
import { change, type DispatchFixture, done, quiet } from "../fixture.ts";
import { open, reconciler, runs, withPods } from "./fixture.ts";

const minute = 60_000;
const hour = 60 * minute;
/** The maximum time between two checks for due keys. */
const longestLook = 1.5 * minute;

const every = (resyncMs: number | undefined) => reconciler(resyncMs === undefined ? {} : { resyncMs });
const named = (count: number) => Array.from({ length: count }, (_, index) => `shop-${index}`);

/** A reconciler whose objects are known and have each run once. */
async function opened(count: number, resyncMs: number | undefined, options: Parameters<typeof open>[0] = {}) {
  const fixture = await open({ manifest: every(resyncMs), ...options });
  for (const [index, name] of named(count).entries()) fixture.subscription.change(change("Added", name, 11 + index));
  await quiet(fixture.runner);
  await fixture.clock.advance(1_000);
  fixture.runner.deliveries.length = 0;
  return fixture as DispatchFixture;
}

/** Kills the process, and starts another one after a time. */
async function downFor(fixture: DispatchFixture, ms: number, resyncMs: number | undefined): Promise<DispatchFixture> {
  fixture.kill();
  await fixture.clock.advance(ms);
  const next = await fixture.restart({ manifest: every(resyncMs) });
  return withPods(next, false);
}

/** Number of runs of each object, without those that a kill interrupted and that were repeated with a flag. */
function counts({ runner }: DispatchFixture, objects: number): number[] {
  const found = new Map<string, number>();
  for (const { object, redelivered } of runner.deliveries)
    if (!redelivered) found.set(object.name, (found.get(object.name) ?? 0) + 1);
  return named(objects).map((name) => found.get(name) ?? 0);
}

describe("a resync", () => {
  it("runs each key once in each round, however often and for how long the process is down", async () => {
    const upAndDown = fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 0, max: 59 })), {
      minLength: 1,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(upAndDown, async (spells) => {
        let fixture = await opened(20, hour);
        const from = fixture.clock.now();
        for (const [up, down] of spells) {
          await fixture.clock.advance(up * minute);
          fixture = await downFor(fixture, down * minute, hour);
        }
        await fixture.clock.advance(hour);
        const passed = fixture.clock.now() - from;
        // A process that lives only minutes may have more than one round to catch up on: each key then gets one run for all.
        const least = spells.every(([up, down]) => 9 * up >= down + 20) ? Math.floor((passed - longestLook) / hour) : 1;
        for (const count of counts(fixture, 20)) {
          expect(count).toBeGreaterThanOrEqual(least);
          expect(count).toBeLessThanOrEqual(Math.ceil((passed + longestLook) / hour));
        }
      }),
      { numRuns: 15 },
    );
  });

  it("runs no key more than once for a downtime of many rounds, and spreads those runs", async () => {
    const up = await downFor(await opened(200, 10 * hour), 100 * hour, 10 * hour);
    await up.clock.advance(3 * minute);
    expect(up.runner.deliveries.length).toBeLessThan(30);
    await up.clock.advance(2 * hour);
    expect(counts(up, 200).every((count) => count === 1 || count === 2)).toBe(true);
    expect(up.runner.deliveries.length).toBeLessThan(260);
    expect(up.runner.deliveries.every(({ causes }) => causes?.every(({ type }) => type === "Resync"))).toBe(true);
  });

  it("spreads the runs of a time in which the machine slept", async () => {
    const fixture = await opened(200, hour);
    fixture.clock.suspend(50 * minute);
    await fixture.clock.advance(minute);
    expect(fixture.runner.deliveries.length).toBeLessThan(100);
    await fixture.clock.advance(9 * minute);
    expect(counts(fixture, 200).filter((count) => count === 0).length).toBeLessThan(40);
  });

  it("runs each key within the new round where the round became shorter or longer during a downtime", async () => {
    for (const [before, after] of [
      [10 * hour, hour],
      [hour, 10 * hour],
    ] as const) {
      const first = await opened(50, before);
      await first.clock.advance(20 * minute);
      first.runner.deliveries.length = 0;
      const second = await downFor(first, 20 * minute, after);
      await second.clock.advance(after - 10 * minute);
      const found = counts(second, 50);
      expect(Math.min(...found)).toBe(1);
      expect(found.filter((count) => count > 1).length).toBeLessThan(25);
    }
  });

  it("that is edited while the function runs goes by the new round within a minute and a half", async () => {
    const fixture = await opened(50, 10 * hour);
    await fixture.function.replace(every(10 * minute), false, async () => {});
    await fixture.clock.advance(10 * minute + longestLook);
    expect(Math.min(...counts(fixture, 50))).toBe(1);
  });

  it.each(["while the function runs", "during a downtime"])(
    "that is removed %s and comes back later runs no key for the time between",
    async (when) => {
      const isHot = when === "while the function runs";
      let fixture = await opened(50, hour);
      const edit = async (resyncMs: number | undefined) => {
        if (isHot) await fixture.function.replace(every(resyncMs), false, async () => {});
        else fixture = await downFor(fixture, 1_000, resyncMs);
        await fixture.clock.advance(longestLook);
      };
      await edit(undefined);
      fixture.runner.deliveries.length = 0;
      await fixture.clock.advance(10 * hour);
      expect(fixture.runner.deliveries).toEqual([]);
      await edit(hour);
      await fixture.clock.advance(2 * minute);
      expect(fixture.runner.deliveries.length).toBeLessThan(15);
      await fixture.clock.advance(hour);
      expect(Math.min(...counts(fixture, 50))).toBe(1);
    },
  );

  it("runs each key within a round where wall time was set back during a downtime", async () => {
    const first = await opened(50, hour);
    first.clock.step(-1_000 * hour);
    const second = await downFor(first, minute, hour);
    await second.clock.advance(hour + longestLook);
    expect(Math.min(...counts(second, 50))).toBe(1);
  });

  it("writes its position once a minute at most beside the keys that it wakes", async () => {
    const disk = new MemoryDisk();
    const store = new MemoryStore(disk);
    const fixture = await opened(1, 10 * hour, { disk, store });
    let writes = 0;
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      writes += batch.cursors.length;
      return commit(batch);
    };
    await fixture.clock.advance(10 * hour);
    expect(writes).toBeGreaterThan(0);
    expect(writes).toBeLessThanOrEqual(63);
  });
});

describe("a resync of many keys at once", () => {
  /** A resync of 20,000 keys alone. */
  function alone(share: { isSpent: boolean; soon: (work: () => void) => void }, round: number) {
    const clock = new BusyClock();
    const time = new LoopTime(clock).account("copy");
    const woken = new Set<string>();
    const resync = new Resync({
      clock,
      random: () => 0,
      commits: { cursorMoved: () => {}, dropCursor: () => {} },
      view: 1,
      cursor: undefined,
      everyMs: () => round,
      keys: () => named(20_000),
      wake: (key) => {
        clock.work(0.036);
        woken.add(key);
      },
      time,
      share,
    });
    resync.start();
    return { clock, time, woken, resync };
  }

  it("holds the loop for no longer than a turn, and is on the function's account", async () => {
    const { clock, time, woken, resync } = alone({ isSpent: false, soon: (work) => work() }, 1_000);
    await clock.advance(3_000);
    expect(woken.size).toBe(20_000);
    expect(clock.longest).toBeLessThanOrEqual(6);
    expect(time.spent.get("keys")).toBeGreaterThan(20_000 * 0.000_03);
    resync.stop();
  });

  it("is not over, by its position, before all of them were woken", async () => {
    const waiting: (() => void)[] = [];
    const share = { isSpent: true, soon: (work: () => void) => void waiting.push(work) };
    const { clock, woken, resync } = alone(share, 1_000);
    const before = resync.cursor()?.lowWaterMark;
    await clock.advance(3_000);
    expect([waiting.length, woken.size]).toEqual([1, 16]);
    resync.stop();
    share.isSpent = false;
    for (const work of waiting) work();
    await clock.advance(3_000);
    expect([woken.size, resync.cursor()?.lowWaterMark]).toEqual([16, before]);
  });

  it("writes no more of them with one commit than any work of one function", async () => {
    const disk = new MemoryDisk();
    const store = new MemoryStore(disk);
    const rows: number[] = [];
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      rows.push(batch.spill.length + batch.unspill.length);
      return commit(batch);
    };
    const fixture = await opened(1_000, undefined, {
      disk,
      store,
      manifest: reconciler({ resyncMs: 1_000, concurrency: 1_000 }),
    });
    rows.length = 0;
    for (let tenth = 0; tenth < 100; tenth++) await fixture.clock.advance(100);
    expect(Math.min(...counts(fixture, 1_000))).toBeGreaterThanOrEqual(4);
    expect(Math.max(...rows)).toBeLessThanOrEqual(mostRows + 16);
  });
});

describe("a time that a reconciler asks for", () => {
  it.each([0, -24 * hour, -1_000 * hour])(
    "passes while the process is down, and its key runs once after the start, with wall time set by %i ms",
    async (step) => {
      const first = await opened(1, undefined);
      first.runner.answer = () => ({ ...done, requeueAfterMs: hour });
      first.subscription.change(change("Modified", "shop-0", 50));
      await first.clock.advance(1_000);
      first.runner.answer = () => done;
      first.clock.step(step);
      // If wall time was set back, the downtime is unknown: at most one further interval is waited.
      const second = await downFor(first, 2 * hour, undefined);
      await second.clock.advance(step === 0 ? 1_000 : hour);
      expect(runs(second)).toEqual(["shop-0@50 <- Modified settings shop-0", "shop-0@50 <- Requeue"]);
      await second.clock.advance(10 * hour);
      expect(second.runner.deliveries).toHaveLength(2);
    },
  );

  it("comes no later by how long the run took where wall time is set back while the process is down", async () => {
    const first = await opened(1, undefined);
    first.runner.answer = () => undefined;
    first.subscription.change(change("Modified", "shop-0", 50));
    await first.clock.advance(hour);
    await first.runner.end("shop-0", { type: "ok", durationMs: 1, requeueAfterMs: minute });
    await first.clock.advance(1_000);
    first.runner.answer = () => done;
    first.clock.step(-24 * hour);
    const second = await downFor(first, 1_000, undefined);
    await second.clock.advance(minute);
    expect(runs(second).at(-1)).toBe("shop-0@50 <- Requeue");
  });
});
