import { beforeEach, describe, expect, it } from "vitest";
import { ExecutorHandle, type PlacedFunction } from "../../runtime/sandbox/host/executor.ts";
import type { LinkListener } from "../../runtime/sandbox/host/link.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";

describe("an executor whose heart beats is killed where it promises", () => {
  let clock: VirtualClock;
  let link: LinkListener;
  let executor: ExecutorHandle;
  let death: string | undefined;
  let losses: string[];
  let loadingSince: number | undefined;

  const say = (type: number, header: unknown, body = "") =>
    link.data(Buffer.concat(encodeFrame(type, header, [Buffer.from(body)])));
  const placed = (name: string): PlacedFunction => ({
    function: name,
    memoryBytes: 1,
    isolates: 1,
    size: 0,
    get loadingSince() {
      return loadingSince;
    },
    frame: () => {},
    roomAgain: () => {},
    isOverdue: () => false,
    lost: (verdict) => losses.push(`${name}: ${verdict}`),
  });
  const beatFor = async (ms: number) => {
    for (let at = 0; at < ms && death === undefined; at += 200) {
      say(frameType.beat, {});
      await clock.advance(200);
    }
  };

  beforeEach(() => {
    clock = new VirtualClock();
    death = undefined;
    losses = [];
    loadingSince = undefined;
    const launch = (listener: LinkListener) => {
      link = listener;
      return {
        pid: 1,
        peakMemory: 0,
        write: (_: Buffer, taken?: () => void) => taken?.(),
        pause: () => {},
        resume: () => {},
        capMemory: () => {},
        kill: () => listener.ended("exited", "killed"),
      };
    };
    executor = new ExecutorHandle({ guest: "", clock, launch, idleMs: 1, recycleEvents: 1 }, 1, {
      died: (reason, detail) => (death = `${reason}: ${detail}`),
      deserted: () => {},
    });
    executor.add(placed("f"));
    link.opened();
    say(frameType.ready, {});
  });

  it("its own end, and stays", async () => {
    say(frameType.doomed, { functionId: 1, reason: "poisoned" });
    await beatFor(4800);
    expect(death).toBeUndefined();
    await beatFor(400);
    expect(death).toBe("stuck: it did not end itself");
  });

  it("its own end, and the others finish meanwhile, though it says of a second isolate that it cannot be stopped", async () => {
    executor.add(placed("g"));
    executor.add(placed("innocent"));
    say(frameType.doomed, { functionId: 1, reason: "poisoned" });
    say(frameType.doomed, { functionId: 2, reason: "poisoned" });
    expect(losses.filter((loss) => loss.startsWith("innocent"))).toEqual(["innocent: bystander"]);
    await beatFor(5200);
    expect(death).toBe("stuck: it did not end itself");
  });

  it("an isolate's end, and goes on", async () => {
    say(frameType.entering, { functionId: 1, realm: 1, events: [1] });
    const over = { reason: "cpu", charged: [1], interrupted: [], stack: "", running: true };
    say(frameType.ended, { functionId: 1, realm: 1, ...over });
    await beatFor(14_000);
    expect(death).toBeUndefined();
    await beatFor(4000);
    expect(death).toBe("silent: the end of an isolate is overdue");
  });

  it("to load a module, and says nothing of it", async () => {
    loadingSince = clock.monotonic();
    await beatFor(60_000);
    expect(death).toBeUndefined();
    await beatFor(8000);
    expect(death).toBe("silent: a module's load is overdue");
  });
});
