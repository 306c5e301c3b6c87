import { expect, test } from "vitest";
import { apart } from "../../runtime/v8/own-copy.ts";

const chunk = Buffer.allocUnsafeSlow(64 * 1024);

test("a body that is kept keeps no more than an eighth beside itself alive, whatever it was received with", () => {
  for (const length of [1, 1_000, 33 * 1024, 50 * 1024, 57 * 1024, chunk.length]) {
    const body = chunk.subarray(chunk.length - length);
    const kept = apart(body);
    expect(kept.equals(body)).toBe(true);
    expect(kept.buffer.byteLength).toBeLessThanOrEqual((length * 8) / 7 + 1);
  }
});

test("a body that has most of its memory to itself is not copied", () => {
  const body = chunk.subarray(chunk.length / 8);
  expect(apart(body)).toBe(body);
});

test("all who keep a body keep one copy, also where that is kept on", () => {
  const body = chunk.subarray(0, 100);
  expect(apart(body)).toBe(apart(body));
  expect(apart(apart(body))).toBe(apart(body));
});
