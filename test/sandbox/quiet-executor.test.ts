import { beforeEach, describe, expect, it } from "vitest";
import { ExecutorHandle, type PlacedFunction } from "../../runtime/sandbox/host/executor.ts";
import type { LinkListener } from "../../runtime/sandbox/host/link.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";

describe("whether an executor may run code", () => {
  let clock: VirtualClock;
  let link: LinkListener;
  let reported: (boolean | "events")[];
  let executor: ExecutorHandle;
  let functionId: PlacedFunction & { size: number; loadingSince: number | undefined };

  beforeEach(() => {
    clock = new VirtualClock();
    reported = [];
    const launch = (listener: LinkListener) => {
      link = listener;
      return {
        pid: 1,
        peakMemory: 0,
        write: (bytes: Buffer, taken?: () => void) => {
          if (bytes.readUInt8(4) === frameType.events) reported.push("events");
          taken?.();
        },
        pause() {},
        resume() {},
        capMemory() {},
        mayRun: (isPossible: boolean) => reported.push(isPossible),
        kill() {},
      };
    };
    const keeper = { died() {}, deserted() {} };
    executor = new ExecutorHandle({ guest: "", clock, launch, idleMs: 1, recycleEvents: 1 }, 1, keeper);
    link.opened();
    functionId = {
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
    executor.add(functionId);
  });

  const says = (type: number, header: object) => link.data(Buffer.concat(encodeFrame(type, header)));
  const begin = (item: number) =>
    executor.send({ type: frameType.events, header: { functionId: 1, items: [] }, segments: [Buffer.alloc(item)] });

  /** Advances time while the executor sends heartbeats. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1000) {
      says(frameType.beat, {});
      await clock.advance(Math.min(1000, left));
    }
  }

  it("is no after some seconds without an event, and yes before the next frame is sent to it", async () => {
    await pass(5000);
    expect(reported).toEqual([false]);
    begin(1);
    expect(reported).toEqual([false, true, "events"]);
    await pass(5000);
    expect(reported).toEqual([false, true, "events", false]);
  });

  it.each<[string, () => void]>([
    ["it has an event", () => (functionId.size = 1)],
    ["it loads a module", () => (functionId.loadingSince = 0)],
    ["a thread of it has not left an isolate", () => says(frameType.entering, { functionId: 1, realm: 1, events: [] })],
  ])("is yes while %s, however long", async (_, happens) => {
    happens();
    await pass(10_000);
    expect(reported).toEqual([]);
  });
});
