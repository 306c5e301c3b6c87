import { beforeEach, describe, expect, it } from "vitest";
import { ExecutorProcess } from "../../runtime/sandbox/host/executor-process.ts";
import type { LinkListener } from "../../runtime/sandbox/host/link.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";

const beat = Buffer.concat(encodeFrame(frameType.beat, {}));

describe("an executor that says nothing", () => {
  let clock: VirtualClock;
  let link: LinkListener;
  let isKilled: boolean;

  beforeEach(() => {
    clock = new VirtualClock();
    isKilled = false;
    const launch = (listener: LinkListener) => {
      link = listener;
      return {
        pid: 1,
        peakMemory: 0,
        write: (_: Buffer, taken?: () => void) => taken?.(),
        pause: () => {},
        resume: () => {},
        capMemory: () => {},
        kill: () => (isKilled = true),
      };
    };
    const listener = { frame: () => {}, room: () => {}, died: () => {} };
    new ExecutorProcess({ guest: "", clock, launch: launch as never, idleMs: 1, recycleEvents: 1, listener });
    link.opened();
  });

  it("is killed after three seconds, once it has spoken", async () => {
    link.data(beat);
    await clock.advance(2900);
    expect(isKilled).toBe(false);
    await clock.advance(400);
    expect(isKilled).toBe(true);
  });

  it("has thirty seconds for its first word, since a busy machine starts a process slowly", async () => {
    await clock.advance(29_000);
    expect(isKilled).toBe(false);
    await clock.advance(1300);
    expect(isKilled).toBe(true);
  });

  it("lives where it was this process that stood still, and its words wait to be read", async () => {
    link.data(beat);
    // The timer is due before anything has been read.
    await clock.advance(3010);
    link.data(beat);
    await clock.advance(2900);
    expect(isKilled).toBe(false);
    await clock.advance(400);
    expect(isKilled).toBe(true);
  });
});
