import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LoopAccount, LoopTime } from "../../runtime/engine/account/loop-time.ts";
import { BusyClock } from "../busy-clock.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** A function that does its work as soon as it may, in pieces of a fixed length. */
class Worker {
  readonly account: LoopAccount;
  done = 0;
  waiting = 0;
  /** Length of each uninterrupted stretch of work, in milliseconds. */
  readonly stretches: number[] = [];
  private readonly clock: BusyClock;
  private readonly pieceMs: number;

  constructor(clock: BusyClock, loop: LoopTime, pieceMs: number) {
    this.clock = clock;
    this.pieceMs = pieceMs;
    this.account = loop.account("f", () => this.pump());
    this.account.measures();
  }

  take(pieces: number): void {
    this.waiting += pieces;
    this.pump();
  }

  private pump(): void {
    let stretch = 0;
    while (this.waiting > 0 && this.account.mayBegin()) {
      const began = this.account.begin();
      this.clock.work(this.pieceMs);
      this.account.end("conditions", began);
      stretch += this.pieceMs;
      this.waiting--;
      this.done++;
    }
    if (stretch > 0) this.stretches.push(stretch);
  }
}

const setUp = (...pieces: number[]) => {
  const clock = new BusyClock();
  const loop = new LoopTime(clock);
  return { clock, workers: pieces.map((ms) => new Worker(clock, loop, ms)) };
};

describe("the time of the event loop", () => {
  test("that a function takes is its own as long as it is less than its share", async () => {
    const { clock, workers } = setUp(0.5);
    const [worker] = workers as [Worker];
    for (let each = 0; each < 100; each++) {
      worker.take(1);
      await clock.advance(10);
      expect(worker.waiting).toBe(0);
    }
    expect([worker.account.overSeconds, worker.account.spent.get("conditions")]).toEqual([
      undefined,
      expect.closeTo(0.05),
    ]);
  });

  test("is given in turns of one piece or 5 ms to who is over its share, and never to one of them twice in a row", async () => {
    const { clock, workers } = setUp(1, 1, 8);
    for (const worker of workers) worker.take(1_000);
    // Limit of a burst of all together, whoever runs first: half of the time that the burst takes is refilled meanwhile.
    const atOnce = workers.flatMap(({ stretches }) => stretches.slice(0, 1)).reduce((sum, ms) => sum + ms, 0);
    expect(atOnce).toBeLessThanOrEqual(2 * 10 + 8 + 1);
    const after = workers.map(({ stretches }) => stretches.length);
    for (let each = 0; each < 300; each++) await clock.advance(1);
    for (const [at, { stretches }] of workers.entries()) {
      const turns = stretches.slice(after[at]);
      expect(Math.max(...turns)).toBeLessThanOrEqual(8);
    }
    const took = workers.map(({ stretches }, at) => stretches.slice(after[at]).reduce((sum, ms) => sum + ms, 0));
    // The excess of a piece that is too long for a slice is subtracted from the next slices.
    for (const each of took) expect(each).toBeGreaterThan(0.8 * Math.max(...took));
  });

  test("is there by the next turn for a function that takes little, however many are over their share", async () => {
    const { clock, workers } = setUp(...Array.from({ length: 10 }, () => 2), 0.5);
    const innocent = workers.at(-1) as Worker;
    for (const worker of workers.slice(0, -1)) worker.take(10_000);
    // Until then all have had the same share.
    for (let ms = 0; ms < 200; ms++) await clock.advance(1);
    for (let each = 0; each < 50; each++) {
      innocent.take(1);
      await clock.advance(1);
      expect(innocent.waiting).toBe(0);
      for (let ms = 0; ms < 20; ms++) await clock.advance(1);
    }
  });

  test("of one change that concerns a hundred functions is a burst of all together, and of the next one no more", async () => {
    const { clock, workers } = setUp(...Array.from({ length: 100 }, () => 4));
    for (let change = 0; change < 3; change++) {
      const before = clock.monotonic();
      for (const worker of workers) worker.take(1);
      expect(clock.monotonic() - before).toBeLessThanOrEqual(2 * 10 + 4);
      await clock.advance(1);
    }
  });

  test("is shared by those that take some of it lately, not by all that ever did", async () => {
    const { clock, workers } = setUp(...Array.from({ length: 200 }, () => 1));
    for (const worker of workers) worker.take(1);
    for (let each = 0; each < 500; each++) await clock.advance(1);
    await clock.advance(3_600_000);
    const [one] = workers as [Worker];
    // A tenth of the time is its own share, as with five functions.
    for (let each = 0; each < 100; each++) {
      one.take(1);
      await clock.advance(20);
      expect(one.waiting).toBe(0);
    }
    expect(one.account.overSeconds).toBeUndefined();
  });

  test("is waited for by what was read meanwhile, one after the other, and by nothing once the function is gone", async () => {
    const { clock, workers } = setUp(20);
    const [worker] = workers as [Worker];
    const order: number[] = [];
    const judge = (name: number) =>
      worker.account.soon(() => {
        const began = worker.account.begin();
        clock.work(20);
        worker.account.end("conditions", began);
        order.push(name);
      });
    for (const each of [0, 1, 2, 3]) judge(each);
    expect(order.length).toBeLessThan(4);
    for (let each = 0; each < 200; each++) await clock.advance(1);
    expect(order).toEqual([0, 1, 2, 3]);
    for (const each of [4, 5, 6]) judge(each);
    expect(order.length).toBeLessThan(7);
    worker.account.close();
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test("that is charged counts as if it had passed: a turn has as many charges as fit, and they are on the account", async () => {
    const { clock, workers } = setUp(1);
    const { account } = workers[0] as Worker;
    let done = 0;
    const begin = () => {
      account.charge("calls", 2);
      done++;
    };
    for (let each = 0; each < 100; each++) account.soon(begin);
    // A burst of all together is 10 ms.
    expect(done).toBe(5);
    const turns: number[] = [];
    for (let ms = 0; ms < 70; ms++) {
      const before = done;
      await clock.advance(1);
      turns.push(done - before);
    }
    expect(Math.max(...turns)).toBe(3);
    // Work charged in a turn finishes before the next one: after 5 ms or more no other turn begins.
    expect(turns.filter((each) => each > 0).length).toBeLessThanOrEqual(12);
    for (let ms = 0; ms < 300; ms++) await clock.advance(1);
    expect([done, account.spent.get("calls"), account.isOverShare]).toEqual([100, expect.closeTo(0.2), false]);
  });

  test("of work that is done in pieces is a turn at once, and a turn again and again, while others have theirs", async () => {
    const { clock, workers } = setUp(1, 1);
    const [innocent, busy] = workers as [Worker, Worker];
    let left = 1_000;
    let isDone = false;
    const piece = () => {
      clock.work(1);
      return --left > 0;
    };
    void busy.account.pieces("rows", piece).then(() => {
      isDone = true;
    });
    expect(left).toBe(995);
    for (let each = 0; each < 100; each++) {
      innocent.take(1);
      await clock.advance(2);
      expect(innocent.waiting).toBe(0);
    }
    await clock.advance(1_000);
    expect([left, isDone]).toEqual([0, true]);
    // Both started in one stretch.
    expect(clock.longest).toBeLessThanOrEqual(6);
    expect(busy.account.spent.get("rows")).toBeCloseTo(1);
  });

  test("ends at once for pieces that are left when the function is gone, and a piece that fails ends its work alone", async () => {
    const { clock, workers } = setUp(1);
    const { account } = (workers as [Worker])[0];
    let left = 20;
    const pieces = account.pieces("rows", () => {
      clock.work(1);
      return --left > 0;
    });
    const failing = account.pieces("rows", () => {
      throw new Error("no");
    });
    account.close();
    await pieces;
    await expect(failing).rejects.toThrow("no");
    expect(left).toBe(0);
  });

  test("is accounted for by the function's name as long as it is loaded, also while it is loaded anew", () => {
    const loop = new LoopTime(new VirtualClock());
    expect(loop.of("f")).toBeUndefined();
    const [first, second] = [loop.account("f"), loop.account("f")];
    expect(loop.of("f")).toBe(second);
    first.close();
    expect(loop.of("f")).toBe(second);
    second.close();
    expect(loop.of("f")).toBeUndefined();
  });

  test("comes to all that waits in the end, and what is told of it adds up", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.double({ min: 0.1, max: 30, noNaN: true }), fc.integer({ min: 0, max: 40 })), {
          minLength: 1,
          maxLength: 6,
        }),
        async (greed) => {
          const { clock, workers } = setUp(...greed.map(([ms]) => ms));
          for (const [at, [, pieces]] of greed.entries()) workers[at]?.take(pieces);
          for (let each = 0; each < 6 * 40 * 20 && workers.some(({ waiting }) => waiting > 0); each++)
            await clock.advance(1);
          for (const [at, [ms, pieces]] of greed.entries()) {
            const { done, account } = workers[at] as Worker;
            expect([done, account.spent.get("conditions") ?? 0]).toEqual([
              pieces,
              expect.closeTo((ms * pieces) / 1000),
            ]);
          }
          await clock.advance(5);
          expect(workers.map(({ account }) => account.overSeconds)).toEqual(workers.map(() => undefined));
        },
      ),
      { numRuns: 50 },
    );
  });
});
