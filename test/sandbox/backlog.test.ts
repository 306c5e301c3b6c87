import { beforeEach, describe, expect, it } from "vitest";
import { ExecutorProcess } from "../../runtime/sandbox/host/executor-process.ts";
import type { LinkListener } from "../../runtime/sandbox/host/link.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";

const beat = Buffer.concat(encodeFrame(frameType.beat, {}));
const megabyte = Buffer.alloc(2 ** 20);

describe("an executor that is behind", () => {
  let clock: VirtualClock;
  let link: LinkListener;
  let process: ExecutorProcess;
  let takers: (() => void)[];
  let isReading: boolean;
  let rooms: number;
  let death: string | undefined;
  let cpuMs: number;

  const send = (megabytes: number) =>
    process.send({
      type: frameType.replies,
      header: { functionId: 1, items: [] },
      segments: Array(megabytes).fill(megabyte),
    });
  const take = () => takers.shift()?.();
  /** Sends heartbeats like a genuine executor for this time, whatever else it omits. */
  const beatFor = async (ms: number) => {
    for (let at = 0; at < ms; at += 200) {
      if (isReading) link.data(beat);
      await clock.advance(200);
    }
  };

  beforeEach(() => {
    clock = new VirtualClock();
    takers = [];
    isReading = true;
    rooms = 0;
    death = undefined;
    cpuMs = 0;
    const launch = (listener: LinkListener) => {
      link = listener;
      return {
        pid: 1,
        peakMemory: 0,
        write: (_: Buffer, taken?: () => void) => takers.push(() => taken?.()),
        pause: () => (isReading = false),
        resume: () => (isReading = true),
        capMemory: () => {},
        kill: () => link.ended("exited", "killed"),
      };
    };
    const listener = {
      frame: () => {},
      room: () => rooms++,
      died: (reason: string, detail: string) => (death = `${reason}: ${detail}`),
    };
    process = new ExecutorProcess({
      guest: "",
      clock,
      launch: launch as never,
      idleMs: 1,
      recycleEvents: 1,
      listener: listener as never,
      cpuMs: () => cpuMs,
    });
    link.opened();
    take();
    link.data(beat);
  });

  it("and takes nothing of what it was sent for ten seconds is killed, though its heart beats", async () => {
    send(1);
    await beatFor(9800);
    expect(death).toBeUndefined();
    await beatFor(600);
    expect(death).toMatch(/^breach: it took nothing that it was sent for 10000 ms/);
  });

  it("and takes one frame after another lives, however long all of them take", async () => {
    for (let frame = 0; frame < 5; frame++) send(1);
    for (let frame = 0; frame < 5; frame++) {
      await beatFor(9000);
      take();
    }
    await beatFor(20_000);
    expect(death).toBeUndefined();
  });

  it("is not read and is sent no more from 32 MiB on, and both go on once it has taken some", async () => {
    send(31);
    expect([process.isFull, isReading]).toEqual([false, true]);
    send(2);
    expect([process.isFull, isReading]).toEqual([true, false]);
    // An executor that is not read is not considered silent.
    await clock.advance(5000);
    expect(death).toBeUndefined();
    take();
    expect([process.isFull, isReading, rooms]).toEqual([false, true, 1]);
    await clock.advance(3400);
    expect(death).toMatch(/^silent/);
  });

  it("has no more than half of this process' time in the long run, by whatever it says", async () => {
    const startedAt = clock.monotonic();
    let spentMs = 0;
    while (clock.monotonic() - startedAt < 10_000) {
      if (isReading) {
        // Each of its chunks takes 5 ms to read, and the next is available at once.
        const before = cpuMs;
        const counting = process as unknown as { cpuMs: () => number };
        let asked = 0;
        counting.cpuMs = () => (asked++ === 0 ? before : before + 5);
        link.data(beat);
        cpuMs = before + 5;
        spentMs += 5;
        await clock.advance(5);
      } else await clock.advance(1);
    }
    expect(spentMs).toBeLessThan(5000 + 50);
    expect(spentMs).toBeGreaterThan(4000);
    expect(death).toBeUndefined();
  });

  it("has no more than 256 MiB read of it in a second, and 32 MiB at once, however little that costs", async () => {
    const text = "x".repeat(2_000_000);
    const outbox = Buffer.from(`[[],[[1,1,"kube.get",${text.length}]],[],[],-1,[],0]\n${text}`);
    const frame = Buffer.concat(encodeFrame(frameType.drained, { functionId: 1, realm: 1 }, [outbox]));
    const startedAt = clock.monotonic();
    let bytes = 0;
    while (clock.monotonic() - startedAt < 1000 && bytes < 2 ** 30) {
      if (isReading) {
        link.data(frame);
        bytes += frame.length;
      } else await clock.advance(1);
    }
    expect(bytes).toBeLessThan((256 + 32) * 2 ** 20);
    expect(bytes).toBeGreaterThan(200 * 2 ** 20);
    expect(death).toBeUndefined();
  });
});
