import { expect, it, onTestFinished } from "vitest";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";
import type { Hello, Load } from "../../runtime/sandbox/messages.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "../../runtime/sandbox/wire.ts";

const functions = 60;
const hello: Hello = { heartbeatMs: 2, idleMs: 60_000, recycleEvents: 1000 };
const load: Load = {
  tenant: 1,
  name: "f",
  scriptName: "f.js",
  memoryMb: 32,
  cpuPerEventMs: 500,
  isolation: "Handler",
  isolates: 1,
  concurrency: 1,
  env: "{}",
  solo: 0,
};

it("an executor that is given many functions at once beats between them", async () => {
  const guest = Buffer.from(await guestScript());
  let beats = 0;
  const reader = new FrameReader(maxFrameUp);
  let answers = 0;
  const answered = new Promise<void>((resolve, reject) => {
    const link = launchChild()({
      opened: () => {},
      data: (chunk) => {
        for (const { type } of reader.push(chunk)) {
          if (type === frameType.beat) beats++;
          if (type === frameType.loaded && ++answers === functions) resolve();
        }
      },
      ended: (_, detail) => reject(new Error(detail)),
    });
    onTestFinished(() => link.kill());
    const loads = Array.from({ length: functions }, (_, tenant) =>
      encodeFrame(frameType.load, { ...load, tenant }, [Buffer.from("")]),
    );
    link.write(Buffer.concat([...encodeFrame(frameType.hello, hello, [guest]), ...loads.flat()]));
  });
  await answered;
  // Counted, not timed: this process may wait for a core while they come. 60 loads in one turn leave some 10.
  expect(beats).toBeGreaterThan(functions / 4);
});
