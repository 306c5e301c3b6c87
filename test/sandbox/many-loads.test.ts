import { expect, it, onTestFinished } from "vitest";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";
import type { EventItem, Hello, Load } from "../../runtime/sandbox/messages.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "../../runtime/sandbox/wire.ts";

const functions = 60;
const hello: Hello = { heartbeatMs: 2, idleMs: 60_000, recycleEvents: 1000 };
const load: Load = {
  functionId: 1,
  name: "f",
  scriptName: "f.js",
  memoryMb: 32,
  cpuPerEventMs: 500,
  isolation: "Handler",
  refused: "keys",
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
    const loads = Array.from({ length: functions }, (_, functionId) =>
      encodeFrame(frameType.load, { ...load, functionId }, [Buffer.from("")]),
    );
    link.write(Buffer.concat([...encodeFrame(frameType.hello, hello, [guest]), ...loads.flat()]));
  });
  await answered;
  // Counted instead of timed, because this process may wait for a core meanwhile. 60 loads in one turn leave about 10.
  expect(beats).toBeGreaterThan(functions / 4);
});

it("what a load came to leaves its executor in one write", async () => {
  const guest = Buffer.from(await guestScript());
  const reader = new FrameReader(maxFrameUp);
  const apart: number[] = [];
  let answers = 0;
  const answered = new Promise<void>((resolve, reject) => {
    const link = launchChild()({
      opened: () => {},
      data: (chunk) => {
        const types = [...reader.push(chunk)].map(({ type }) => type);
        const count = (type: number) => types.filter((each) => each === type).length;
        if (count(frameType.drained) !== count(frameType.loaded)) apart.push(answers);
        answers += count(frameType.loaded);
        if (answers === functions) resolve();
      },
      ended: (_, detail) => reject(new Error(detail)),
    });
    onTestFinished(() => link.kill());
    const loads = Array.from({ length: functions }, (_, functionId) =>
      encodeFrame(frameType.load, { ...load, functionId }, [Buffer.from("__watchfire_accept(() => {})")]),
    );
    link.write(Buffer.concat([...encodeFrame(frameType.hello, hello, [guest]), ...loads.flat()]));
  });
  await answered;
  expect(apart).toEqual([]);
});

it("functions and their events that come in one write, and in parts, are each their own", async () => {
  const guest = Buffer.from(await guestScript());
  const reader = new FrameReader(maxFrameUp);
  const said = new Map<number, string>();
  // Larger than a pipe's reads, and of different sizes, so that each frame is assembled from parts.
  const sizeOf = (functionId: number) => 90_000 + 7000 * ((functionId * 5) % 8);
  const functionIds = Array.from({ length: 8 }, (_, index) => index + 1);
  const frames = functionIds.map((functionId) => {
    const script = `/*${"x".repeat(sizeOf(functionId))}*/
      __watchfire_accept((event, ctx) => ctx.log.info(\`${functionId} ${"$"}{event.object.own} ${"$"}{event.object.big.length}\`));`;
    const head = Buffer.from("{}");
    const object = Buffer.from(JSON.stringify({ own: functionId, big: "y".repeat(sizeOf(functionId)) }));
    const items: EventItem[] = [[1, 60_000, head.length, object.length, -1, -1, -1]];
    return [
      ...encodeFrame(frameType.load, { ...load, functionId }, [Buffer.from(script)]),
      ...encodeFrame(frameType.events, { functionId, items }, [head, object]),
    ];
  });
  const all = new Promise<void>((resolve, reject) => {
    const link = launchChild()({
      opened: () => {},
      data: (chunk) => {
        for (const { type, header, body } of reader.push(chunk)) {
          const text = body.toString("utf8");
          if (type !== frameType.drained || !text.includes(" ")) continue;
          said.set((JSON.parse(header) as { functionId: number }).functionId, text.slice(text.indexOf("\n") + 1));
          if (said.size === functionIds.length) resolve();
        }
      },
      ended: (_, detail) => reject(new Error(detail)),
    });
    onTestFinished(() => link.kill());
    link.write(Buffer.concat([...encodeFrame(frameType.hello, hello, [guest]), ...frames.flat()]));
  });
  await all;
  expect([...said].sort(([a], [b]) => a - b)).toEqual(
    functionIds.map((functionId) => [functionId, `${functionId} ${functionId} ${sizeOf(functionId)}`]),
  );
});
