import { expect, it } from "vitest";
import { lookMs } from "../tools/loop-lag.ts";
import { fuzz } from "./fuzz/fuzz.ts";

/** `npm run fuzz` continues for ten minutes, with any seed. */
const seed = 20_261_122;

it("executors that say anything get nothing through, and hold nobody up", async () => {
  const report = await fuzz(8000, seed);
  process.stdout.write(`${JSON.stringify(report)}\n`);
  expect(report.breaches).toEqual([]);
  // The frames were processed: functions ran there and made calls.
  expect(report.frames).toBeGreaterThan(1000);
  expect(report.calls).toBeGreaterThan(100);
  expect(report.events.ok).toBeGreaterThan(10);
  expect(report.deaths.breach).toBeGreaterThan(0);
  expect(report.longestPauseMs).toBeLessThan(50 + lookMs);
  expect(report.memoryPeakMiB - report.memoryBeforeMiB).toBeLessThan(300);
  expect(report.neighbourFaults).toBe(0);
}, 60_000);
