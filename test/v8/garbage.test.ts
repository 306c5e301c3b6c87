import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { growthPercent, youngGrowth } from "../../runtime/v8/garbage.ts";

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

test("the space of young objects grows beyond 16 MiB in a busy loop alone", () => {
  expect([youngGrowth(8 * mebibyte, 0), youngGrowth(16 * mebibyte, 0.4)]).toEqual([2, 1]);
  fc.assert(
    fc.property(
      inUse,
      utilization,
      (size, busy) => youngGrowth(size, busy) === 2 || (busy < 0.5 && size >= 16 * mebibyte),
    ),
  );
});

test("V8 takes the bounds in a process that runs, and keeps its young objects within them", async () => {
  const program = join(import.meta.dirname, "young.program.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-semi-space-size=16", program]);
  const [bounded, busy] = stdout.trim().split(" ").map(Number);
  expect(bounded).toBeLessThanOrEqual(18);
  expect(busy).toBeGreaterThan(18);
});

test("an event that is let go of at once never becomes old, however long those before it have waited", async () => {
  const program = join(import.meta.dirname, "pretenured.program.ts");
  const grewBy = async (bounds: string) =>
    Number((await promisify(execFile)(process.execPath, ["--max-semi-space-size=1", program, bounds])).stdout);
  const [bounded = Number.NaN, unbounded = Number.NaN] = await Promise.all([grewBy("bounded"), grewBy("as V8 does")]);
  expect(bounded).toBeLessThan(unbounded / 3);
});
