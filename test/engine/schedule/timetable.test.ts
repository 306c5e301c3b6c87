import fc from "fast-check";
import { expect, test } from "vitest";
import { Timetable } from "../../../runtime/engine/schedule/timetable.ts";
import { hour, minute } from "./fixture.ts";

const berlin = (cron: string) => new Timetable({ times: { cron, timeZone: "Europe/Berlin" }, jitterMs: 0 }, "it");

/** The times after one moment and before another. */
function between(timetable: Timetable, from: string, to: string): string[] {
  const found: string[] = [];
  for (let time = timetable.next(Date.parse(from)); time !== undefined && time < Date.parse(to); ) {
    found.push(new Date(time).toISOString().slice(5, 16));
    time = timetable.next(time);
  }
  return found;
}

test.each([
  ["30 2 * * *", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]],
  ["0 3 * * *", ["03-28T02:00", "03-29T01:00", "03-30T01:00"]],
])("when clocks go forward, %s comes once each day, in a skipped hour at its end", (cron, times) => {
  expect(between(berlin(cron), "2026-03-27T12:00Z", "2026-03-30T12:00Z")).toEqual(times);
});

test("when clocks go back, a time that occurs twice runs once, and steps continue through both hours", () => {
  expect(between(berlin("30 2 * * *"), "2026-10-24T12:00Z", "2026-10-26T12:00Z")).toEqual([
    "10-25T00:30",
    "10-26T01:30",
  ]);
  const halves = between(berlin("*/30 * * * *"), "2026-10-25T00:01Z", "2026-10-25T02:01Z");
  expect(halves).toEqual(["10-25T00:30", "10-25T01:00", "10-25T01:30", "10-25T02:00"]);
});

test("the times that are due are those that come next, one after the other, across every change of clocks", () => {
  const crons = ["30 2 * * *", "*/20 * * * *", "0 3 * * 1", "15 1-4 * * *"];
  const moment = fc.integer({ min: Date.parse("2026-01-01Z"), max: Date.parse("2027-01-01Z") });
  fc.assert(
    fc.property(fc.constantFrom(...crons), moment, fc.nat(12 * hour), (cron, from, ms) => {
      const timetable = berlin(cron);
      const forward: number[] = [];
      for (let time = timetable.next(from); time !== undefined && time <= from + ms; time = timetable.next(time)) {
        forward.push(time);
      }
      expect(timetable.due(from, from + ms, 40)).toEqual(forward);
    }),
    { numRuns: 40 },
  );
});

test("an interval keeps its distance and its offset in every process, and functions have different ones", () => {
  const times = { everyMs: 10 * minute };
  const [one, same, other] = ["a.tick", "a.tick", "b.tick"].map(
    (owner) => new Timetable({ times, jitterMs: 0 }, owner),
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), (from) => {
      const next = one?.next(from) ?? 0;
      expect(next).toBeGreaterThan(from);
      expect(next).toBeLessThanOrEqual(from + 10 * minute);
      expect(same?.next(from)).toBe(next);
      expect(one?.next(next)).toBe(next + 10 * minute);
      expect(one?.due(next - 1, next, 3)).toEqual([next]);
      expect(other?.next(from)).not.toBe(next);
    }),
  );
});

test("jitter delays a run by less than itself, always by the same, and lets no run overtake another", () => {
  const timetable = new Timetable({ times: { everyMs: minute }, jitterMs: 50_000 }, "a.tick");
  const delays = new Set<number>();
  for (let time = timetable.next(0) ?? 0; time < 2 * hour; time = timetable.next(time) ?? 0) {
    const delay = timetable.beginOf(time) - time;
    delays.add(delay);
    expect(delay).toBeLessThan(50_000);
    expect(delay).toBeGreaterThanOrEqual(0);
    expect(timetable.due(time - 1, time + delay - 1, 10)).toEqual([]);
    expect(timetable.due(time - 1, time + delay, 10)).toEqual([time]);
  }
  expect(delays.size).toBeGreaterThan(50);
});

test("of times that lie closer than their jitter all whose moment came before the first that waits are due", () => {
  const timetable = new Timetable({ times: { cron: "* * * * *", timeZone: "UTC" }, jitterMs: 6 * hour }, "it");
  const moment = fc.integer({ min: Date.parse("2026-01-01Z"), max: Date.parse("2027-01-01Z") });
  fc.assert(
    fc.property(moment, fc.nat(12 * hour), (from, ms) => {
      const forward: number[] = [];
      let time = timetable.next(from);
      while (time !== undefined && timetable.beginOf(time) <= from + ms) {
        forward.push(time);
        time = timetable.next(time);
      }
      expect(timetable.due(from, from + ms, 40)).toEqual(forward.slice(-40));
    }),
    { numRuns: 20 },
  );
});
