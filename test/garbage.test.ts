import fc from "fast-check";
import { expect, test } from "vitest";
import { growthPercent } from "../runtime/garbage.ts";

const mebibyte = 1024 * 1024;
const utilization = fc.double({ min: 0, max: 1, noNaN: true });
const inUse = fc.integer({ min: 0, max: 4096 }).map((mebibytes) => mebibytes * mebibyte);

test("a large heap gathers no more garbage than half of what is in use, however busy its loop is", () => {
  expect(growthPercent(128 * mebibyte, 1)).toBe(50);
  fc.assert(fc.property(utilization, (busy) => growthPercent(2048 * mebibyte, busy) === 50));
});

test("a loop with time to spare keeps its memory small", () => {
  fc.assert(fc.property(inUse, (bytes) => growthPercent(bytes, 0.4) === 50));
});

test("a busy loop with a small heap gathers 64 MB of garbage, and never more than twice what is in use", () => {
  expect(growthPercent(43 * mebibyte, 0.9)).toBe(149);
  fc.assert(
    fc.property(inUse, utilization, (bytes, busy) => {
      const percent = growthPercent(bytes, busy);
      expect(percent).toBeGreaterThanOrEqual(50);
      expect(percent).toBeLessThanOrEqual(200);
    }),
  );
});
