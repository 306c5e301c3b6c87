import fc from "fast-check";
import { expect, it } from "vitest";
import { CronTimes } from "../../runtime/manifest/cron.ts";
import { anyCron, type ClockChange, changesOf, daily, type KnownCron, MinuteScan, wallReader } from "./minute-scan.ts";

const minute = 60_000;
const around = 36 * 60 * minute;
/** `npm run test:clocks` tests all years, which takes about 16 s of CPU each. */
const years = process.env.ALL_YEARS === undefined ? [2026] : [2024, 2025, 2026, 2027, 2028, 2029, 2030];
const zones = Intl.supportedValuesOf("timeZone");
/** Number of random expressions for each clock change, in addition to the schedules with one time a day. */
const drawn = 2;

/**
 * Offsets in minutes from the last minute before a change, for times that it skips or repeats, and for those just before and
 * after.
 */
const near = [-120, -61, -60, -59, -31, -30, -29, -1, 0, 1, 2, 15, 29, 30, 31, 45, 59, 60, 61, 62, 120, 121, 720];

/** Schedules with one time a day, near the change. */
function dailyNear({ zone, at }: ClockChange): KnownCron[] {
  const last = wallReader(zone)(at - minute);
  return near.map((minutes) => daily(Math.floor((last + minutes) / 60) % 24, (last + minutes) % 60));
}

/** The fault of a schedule's times around a clock change; `undefined` if they are right. */
function fault({ zone, at }: ClockChange, cron: KnownCron, expected: readonly number[]): string | undefined {
  const times = new CronTimes(cron.text, zone);
  const forward: number[] = [];
  let time = times.next(at - around - 1);
  for (; time !== undefined && time < at + around; time = times.next(time)) forward.push(time);
  const back = expected.length === 0 ? [] : times.before(at + around, expected.length);
  const isRight = forward.join() === expected.join() && back.join() === expected.join();
  return isRight ? undefined : `${zone} ${new Date(at).toISOString()} ${cron.text}`;
}

it.each(years)(
  "each schedule keeps its times over each change of clocks in the world in %i",
  { timeout: 600_000 },
  (year) => {
    const { seed = 0 } = fc.readConfigureGlobal();
    const changes = zones.flatMap((zone) => changesOf(zone, Date.UTC(year, 0), Date.UTC(year + 1, 0)));
    const crons = fc.sample(anyCron, { seed: seed + year, numRuns: drawn * changes.length });
    const wrong = changes.flatMap((change, index) => {
      const scan = new MinuteScan(change.zone, change.at - around, change.at + around);
      const each = [...dailyNear(change), ...crons.slice(index * drawn, (index + 1) * drawn)];
      return each.flatMap((cron) => fault(change, cron, scan.runs(cron)) ?? []);
    });
    expect(changes.length).toBeGreaterThan(100);
    expect(wrong).toEqual([]);
  },
);

it("no zone changes its clocks twice within 28 hours", () => {
  for (const zone of zones) {
    const changes = changesOf(zone, Date.UTC(2024, 0), Date.UTC(2031, 0)).map(({ at }) => at);
    for (const [index, at] of changes.entries())
      expect(at - (changes[index - 1] ?? 0)).toBeGreaterThan(28 * 60 * minute);
  }
});
