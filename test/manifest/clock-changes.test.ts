import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CronTimes } from "../../runtime/manifest/cron.ts";
import {
  anyCron,
  type ClockChange,
  changesOf,
  daily,
  everyMinutes,
  type KnownCron,
  MinuteScan,
  wallReader,
} from "./minute-scan.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const quarter = 15 * minute;
const minutesOfDay = 24 * 60;

/**
 * Changes by an hour at 2:00, by half an hour, by two hours, at midnight, at the day's end, in Ramadan, and odd offsets.
 */
const zones = [
  ...["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "America/Santiago"],
  ...["Asia/Beirut", "Africa/Cairo", "America/Havana", "America/Nuuk", "Atlantic/Azores", "Africa/Casablanca"],
  ...["Pacific/Chatham", "America/St_Johns"],
];
const changes = zones.flatMap((zone) => changesOf(zone, Date.UTC(2024, 0), Date.UTC(2031, 0)));
const anyChange = fc.constantFrom(...changes);

const scans = new Map<ClockChange, MinuteScan>();
/** The minutes of a day and a half before and after a change. */
function scanOf(change: ClockChange): MinuteScan {
  const found = scans.get(change) ?? new MinuteScan(change.zone, change.at - 1.5 * day, change.at + 1.5 * day);
  scans.set(change, found);
  return found;
}

/** All times from one moment on and before another. */
function timesIn({ text }: KnownCron, zone: string, from: number, to: number): number[] {
  const times = new CronTimes(text, zone);
  const found: number[] = [];
  for (let time = times.next(from - 1); time !== undefined && time < to; time = times.next(time)) found.push(time);
  return found;
}

/** The local times of a schedule, as `day hour:minute`. */
function shown(zone: string, cron: string, from: string, to: string): string[] {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  const known = { text: cron, minutes: [], hours: [], weekdays: [], startsWithStar: false };
  return timesIn(known, zone, Date.parse(from), Date.parse(to)).map((time) => format.format(time).slice(8));
}

describe("while clocks change", () => {
  it("a schedule runs at the minutes in which clocks show its times, or first show a later one", () => {
    fc.assert(
      fc.property(anyChange, anyCron, (change, cron) => {
        const [from, to] = [change.at - 1.5 * day, change.at + 1.5 * day];
        expect(timesIn(cron, change.zone, from, to)).toEqual(scanOf(change).runs(cron));
      }),
      { numRuns: 40 },
    );
  });

  it("the last times before any moment are those that come one after the other up to it", () => {
    const anyOff = fc.oneof(fc.integer({ min: -day, max: day }), fc.integer({ min: -3 * hour, max: 3 * hour }));
    const often = fc.constantFrom(everyMinutes(1), everyMinutes(5), everyMinutes(20));
    fc.assert(
      fc.property(anyChange, fc.oneof(anyCron, often), anyOff, fc.integer({ min: 1, max: 40 }), (...it) => {
        const [change, cron, off, most] = it;
        const before = change.at + off;
        const expected = scanOf(change)
          .runs(cron)
          .filter((time) => time < before)
          .slice(-most);
        const found = new CronTimes(cron.text, change.zone).before(before, most);
        expect(found.filter((time) => time >= change.at - 1.5 * day)).toEqual(expected);
        expect(found.length).toBe(most);
      }),
      { numRuns: 40 },
    );
  });

  it.each(zones)("a schedule of one time a day has one run in each day from noon to noon in %s", (zone) => {
    for (const { at } of changes.filter((change) => change.zone === zone).slice(0, 4)) {
      const wall = wallReader(zone);
      const quarters = Array.from({ length: 4 * 96 }, (_, index) => at - 2 * day + index * quarter);
      const noons = quarters.filter((each) => wall(each) % minutesOfDay === minutesOfDay / 2);
      expect(noons.length).toBeGreaterThan(2);
      for (const minutes of [-60, -30, 0, 1, 31, 61, 600]) {
        const time = (wall(at - minute) + minutes) % minutesOfDay;
        const runs = timesIn(daily(Math.floor(time / 60), time % 60), zone, noons[0] ?? 0, noons.at(-1) ?? 0);
        const days = runs.map((run) => noons.findLastIndex((noon) => noon <= run));
        expect(days).toEqual(noons.slice(1).map((_, index) => index));
      }
    }
  });

  it("a schedule of each minute runs at each minute, and one of each hour at each hour that clocks show", () => {
    fc.assert(
      fc.property(anyChange, (change) => {
        const [from, to] = [change.at - 3 * hour, change.at + 3 * hour];
        const each = { minutes: [], hours: [], weekdays: [], startsWithStar: true };
        const minutes = timesIn({ text: "* * * * *", ...each }, change.zone, from, to);
        expect(minutes).toEqual(Array.from({ length: 360 }, (_, index) => from + index * minute));
        if (change.byMinutes % 60 !== 0) return;
        const hours = timesIn({ text: "30 * * * *", ...each }, change.zone, from, to);
        expect(new Set(hours.map((time, index) => time - (hours[index - 1] ?? time - hour)))).toEqual(new Set([hour]));
      }),
      { numRuns: 30 },
    );
  });

  it.each([
    ["Europe/Berlin", "0 2,14 * * *", "2026-03-28T23:00Z", "2026-03-29T22:00Z", ["29 03:00", "29 14:00"]],
    ["Europe/Berlin", "*/20 2 * * *", "2026-03-28T23:00Z", "2026-03-29T22:00Z", ["29 03:00"]],
    ["Europe/Berlin", "0 */2 * * *", "2026-03-28T23:00Z", "2026-03-29T03:00Z", ["29 00:00", "29 03:00", "29 04:00"]],
    ["Europe/Berlin", "0 2,14 * * *", "2026-10-24T22:00Z", "2026-10-25T23:00Z", ["25 02:00", "25 14:00"]],
    ["America/Nuuk", "30 23 * * *", "2026-03-28T12:00Z", "2026-03-30T12:00Z", ["29 00:00", "29 23:30"]],
    ["Africa/Cairo", "30 23 * * *", "2026-10-29T12:00Z", "2026-10-31T12:00Z", ["29 23:30", "30 23:30"]],
    ["America/Havana", "0 0 * * *", "2026-10-31T12:00Z", "2026-11-02T12:00Z", ["01 00:00", "02 00:00"]],
    ["Asia/Beirut", "0 0 29 3 *", "2026-03-28T12:00Z", "2026-03-30T12:00Z", ["29 01:00"]],
    [
      "Australia/Lord_Howe",
      "15 * * * *",
      "2026-10-03T14:30Z",
      "2026-10-03T16:30Z",
      ["04 01:15", "04 02:30", "04 03:15"],
    ],
    [
      "Pacific/Apia",
      "0 12 * * *",
      "2011-12-29T12:00Z",
      "2012-01-01T00:00Z",
      ["29 12:00", "31 00:00", "31 12:00", "01 12:00"],
    ],
  ])("in %s %s from %s to %s comes at %j", (zone, cron, from, to, times) => {
    expect(shown(zone, cron, from, to)).toEqual(times);
  });
});

it("a schedule of the 29th of February finds its time over all changes between", () => {
  expect(shown("America/Santiago", "0 0 29 2 *", "2024-03-01T00:00Z", "2028-03-02T00:00Z")).toEqual(["29 00:00"]);
});
