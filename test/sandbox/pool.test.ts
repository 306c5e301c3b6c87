import { beforeEach, describe, expect, it } from "vitest";
import type { LinkListener } from "../../runtime/sandbox/host/link.ts";
import { commonGroup, ExecutorPool } from "../../runtime/sandbox/host/pool.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";

const beat = Buffer.concat(encodeFrame(frameType.beat, {}));
const minute = 60_000;

describe("a spare executor", () => {
  let clock: VirtualClock;
  let pool: ExecutorPool;
  /** Listeners of the live executors, in the order of their start. */
  let living: LinkListener[];

  beforeEach(() => {
    clock = new VirtualClock();
    living = [];
    const launch = (listener: LinkListener) => {
      living.push(listener);
      queueMicrotask(() => listener.opened());
      const kill = () => queueMicrotask(() => die(listener));
      const link = { pid: 1, peakMemory: 0, pause() {}, resume() {}, capMemory() {}, kill };
      return { ...link, write: (_: Buffer, taken?: () => void) => taken?.() };
    };
    const settings = { guest: "", clock, launch, idleMs: 5 * minute, recycleEvents: 1 };
    pool = new ExecutorPool(settings, { shared: 1, own: 32 }, () => {});
  });

  const die = (listener: LinkListener): void => {
    living = living.filter((one) => one !== listener);
    listener.ended("exited", "SIGKILL");
  };

  /** Advances time while every executor sends heartbeats. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1000) {
      for (const listener of living) listener.data(beat);
      await clock.advance(Math.min(1000, left));
    }
  }

  it("is not kept where no executor ends: the first function takes the one that was started for it", async () => {
    expect(living).toHaveLength(1);
    pool.take(commonGroup);
    await pass(minute);
    expect(living).toHaveLength(1);
  });

  it("is started once an executor has ended, and takes the place of the next one that does", async () => {
    pool.take(commonGroup);
    die(living[0] as LinkListener);
    const second = pool.take(commonGroup);
    await pass(2000);
    expect(living).toHaveLength(2);
    const [, spare] = living;
    die(living[0] as LinkListener);
    const third = pool.take(commonGroup);
    expect([second?.isDead, third?.isDead, living]).toEqual([true, false, [spare]]);
  });

  it("is let go of when no executor has ended for long", async () => {
    pool.take(commonGroup);
    die(living[0] as LinkListener);
    pool.take(commonGroup);
    await pass(9 * minute);
    expect(living).toHaveLength(2);
    await pass(6 * minute);
    expect(living).toHaveLength(1);
  });

  it("that ends by itself is not started again and again", async () => {
    pool.take(commonGroup);
    die(living[0] as LinkListener);
    pool.take(commonGroup);
    await pass(2000);
    die(living[1] as LinkListener);
    await pass(minute);
    expect(living).toHaveLength(1);
  });
});

describe("shared executors", () => {
  it("start one after the other: the next once each has sixteen functions, up to the maximum", () => {
    let started = 0;
    const launch = () => {
      started++;
      return { pid: started, peakMemory: 0, pause() {}, resume() {}, capMemory() {}, kill() {}, write() {} };
    };
    const settings = { guest: "", clock: new VirtualClock(), launch, idleMs: 5 * minute, recycleEvents: 1 };
    const pool = new ExecutorPool(settings, { shared: 2, own: 32 }, () => {});
    const startedAt = (functions: number) => {
      for (let count = 0; count < functions; count++) pool.take(commonGroup)?.add(placed);
      return started;
    };
    expect([startedAt(16), startedAt(1), startedAt(15), startedAt(100)]).toEqual([1, 2, 2, 2]);
    expect(pool.executors.map(({ size }) => size)).toEqual([66, 66]);
  });
});

const placed = {
  function: "f",
  memoryBytes: 1,
  isolates: 1,
  size: 0,
  loadingSince: undefined,
  frame() {},
  roomAgain() {},
  isOverdue: () => false,
  lost() {},
};
