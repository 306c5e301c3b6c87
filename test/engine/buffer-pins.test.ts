import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { BufferPins } from "../../runtime/engine/work/budget.ts";

const kib = 1024;

/** An event whose body is a part of a chunk. */
const eventIn = (chunk: Buffer, at = 0) => ({
  size: 100,
  body: chunk.subarray(at, at + 100) as Buffer | undefined,
  chunk: undefined,
});
const newChunk = () => Buffer.allocUnsafeSlow(64 * kib);
/** True if its body is still the part of the chunk in which it arrived. */
const isPartOf = (chunk: Buffer, { body }: { body: Buffer | undefined }) => body?.buffer === chunk.buffer;

test("events that came together share a chunk, however many they are", () => {
  const chunks = new BufferPins();
  const chunk = newChunk();
  for (let index = 0; index < 600; index++) {
    const event = eventIn(chunk, index * 100);
    chunks.hold(event);
    expect(isPartOf(chunk, event)).toBe(true);
  }
});

test("no more than 4 MiB of chunks are kept alive: from there on bodies are copied out", () => {
  const chunks = new BufferPins();
  const kept = Array.from({ length: 100 }, () => {
    const chunk = newChunk();
    const event = eventIn(chunk);
    chunks.hold(event);
    return isPartOf(chunk, event);
  });
  expect(kept.filter(Boolean)).toHaveLength(64);
  expect(kept.lastIndexOf(true)).toBe(63);
});

test("a chunk counts until the last of its events is released, once", () => {
  const chunks = new BufferPins();
  const first = newChunk();
  const two = [eventIn(first), eventIn(first, 200)];
  for (const event of two) chunks.hold(event);
  for (let index = 0; index < 63; index++) chunks.hold(eventIn(newChunk()));
  const fits = () => {
    const chunk = newChunk();
    const event = eventIn(chunk);
    chunks.hold(event);
    return isPartOf(chunk, event);
  };
  expect(fits()).toBe(false);
  for (const event of [two[0], two[0]]) if (event) chunks.release(event);
  expect(fits()).toBe(false);
  if (two[1]) chunks.release(two[1]);
  expect(fits()).toBe(true);
});

test("of events that are over no chunk is kept alive, nor of the last that was held", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const chunks = new BufferPins();
  const chunk = (() => {
    const event = eventIn(newChunk());
    chunks.hold(event);
    chunks.release(event);
    return new WeakRef(event.body?.buffer ?? {});
  })();
  // A new weak reference is kept alive until the turn is over.
  await new Promise(setImmediate);
  collect();
  expect(chunk.deref()).toBeUndefined();
});

test("a large body counts once, however many triggers receive it, until the last of its events is released", () => {
  const pins = new BufferPins();
  const body = Buffer.alloc(1024 * kib);
  const events = Array.from({ length: 100 }, () => ({ size: body.length, body, chunk: undefined }));
  expect(events.map((event) => pins.hold(event)).reduce((sum, bytes) => sum + bytes)).toBe(body.length);
  expect(events.every((event) => event.body === body)).toBe(true);
  const released = events.map((event) => pins.release(event));
  expect(released.slice(0, -1).every((bytes) => bytes === 0)).toBe(true);
  expect(released.at(-1)).toBe(body.length);
  expect(pins.hold({ size: body.length, body, chunk: undefined })).toBe(body.length);
});
