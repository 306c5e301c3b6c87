import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BusyClock } from "../../busy-clock.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { done, failure, manifest, quiet } from "../fixture.ts";
import { hour, minute, ScheduleFixture, schedule } from "./fixture.ts";

const at = (text: string) => new VirtualClock(Date.parse(`${text}Z`));
const day = 24 * hour;
const every = (everyMs: number, over = {}) => schedule({ times: { everyMs }, ...over });

describe("a schedule", () => {
  test("begins from now when it is new, and runs at each of its times, with its time told", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T03:00:01") });
    expect(fixture.next).toBe("2026-03-02T03:00");
    await fixture.advance(2 * day);
    expect(fixture.told).toEqual(["2026-03-02T03:00", "2026-03-03T03:00"]);
    expect(fixture.runs[0]).toMatchObject({ type: "Scheduled", trigger: "nightly", attempt: 1, redelivered: false });
    expect(fixture.runs[0]?.body.toString()).toBe("null");
    expect(new Set(fixture.runs.map(({ id }) => id)).size).toBe(2);
  });

  test("that is renamed keeps its times, and its next run waits for the one that was under way", async () => {
    const fixture = await ScheduleFixture.open(every(10 * hour), { clock: at("2026-03-01T00:00:00") });
    const { next } = fixture;
    const renamed = every(10 * hour, { name: "renamed" });
    await fixture.killed(0, renamed);
    expect(fixture.next).toBe(next);
    const { runner } = fixture.dispatch;
    runner.answer = () => undefined;
    await fixture.advance(11 * hour);
    expect(fixture.runs.length).toBe(1);
    await fixture.killed(0, every(10 * hour));
    runner.answer = () => undefined;
    await fixture.advance(11 * hour);
    expect(runner.open.size).toBe(1);
    expect(new Set(fixture.runs.map(({ id }) => id)).size).toBe(1);
  });

  test("is ready, and says when it runs next, without anything else to watch", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T00:00:00") });
    const alone = { ...manifest({}, []), name: "alone", schedules: [schedule()] };
    const loaded = await fixture.dispatch.dispatcher.function(alone, { usesOldObject: false });
    expect(loaded.status()).toMatchObject({ ready: true, schedules: [{ trigger: "nightly" }] });
  });

  test("is on its function's account with what telling its times takes", async () => {
    /** A clock that takes a millisecond to read. */
    class SlowClock extends BusyClock {
      override now(): number {
        this.work(1);
        return super.now();
      }
    }
    const clock = new SlowClock(Date.parse("2026-03-01T00:00:00Z"));
    const fixture = await ScheduleFixture.open(schedule(), { clock });
    await fixture.advance(2 * day);
    const loaded = fixture.dispatch.function;
    expect(loaded.status().parentSeconds.get("schedules")).toBeGreaterThan(0.1);
  });

  test("counts its runs among the events of the function, each once", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T00:00:00") });
    await fixture.advance(2 * day);
    expect(fixture.dispatch.outcomes).toEqual(new Map([["ok", 2]]));
  });

  test("runs a failed one again, and gives it up as a dead letter that can be replayed", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    fixture.dispatch.runner.answer = ({ type }) => (type === "Scheduled" ? failure() : done);
    await fixture.advance(hour);
    expect(fixture.told).toEqual(["2026-03-01T03:00", "2026-03-01T03:00 #2", "2026-03-01T03:00 #3"].map(flagRepeats));
    const [letter] = await fixture.dispatch.store.deadLetters();
    expect(letter).toMatchObject({ type: "Scheduled", trigger: "nightly", kind: "Schedule" });
    fixture.dispatch.runner.answer = () => done;
    const whole = await fixture.dispatch.store.deadLetter(letter?.letter ?? "");
    if (whole) await fixture.dispatch.function.replay(whole);
    await fixture.advance(minute);
    expect(fixture.told.at(-1)).toBe("2026-03-01T03:00 !");
  });

  test("tells a run again under its own id, flagged, and its position stays", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    await fixture.advance(hour);
    const [run] = fixture.dispatch.function.runs;
    expect(run && fixture.dispatch.function.runAgain(run)).toBe("told");
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T03:00", "2026-03-01T03:00 !"]);
    expect(new Set(fixture.runs.map(({ id }) => id)).size).toBe(1);
    expect(fixture.next).toBe("2026-03-02T03:00");
  });

  test("runs at once when it is asked to, unflagged, under an id of its own, and its next time stays", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    await fixture.advance(hour);
    expect(fixture.dispatch.function.runNow("nightly")).toBe("told");
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T03:00", "2026-03-01T03:59"]);
    expect(new Set(fixture.runs.map(({ id }) => id)).size).toBe(2);
    expect(fixture.next).toBe("2026-03-02T03:00");
    expect(fixture.dispatch.function.runNow("other")).toBeUndefined();
  });

  test("that was asked to run at once does so after a kill, flagged if its handler had begun, and once", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T12:00:00") });
    fixture.dispatch.runner.answer = ({ type }) => (type === "Scheduled" ? undefined : done);
    fixture.dispatch.function.runNow("nightly");
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T12:00"]);
    fixture.dispatch.runner.answer = () => done;
    await fixture.killed(minute);
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T12:00", "2026-03-01T12:00 !"]);
    await fixture.stopped(minute);
    await fixture.advance(hour);
    expect(fixture.told).toHaveLength(2);
  });

  test("never has two runs at once: times that pass meanwhile become one run, flagged", async () => {
    const fixture = await ScheduleFixture.open(every(10 * minute), { clock: at("2026-03-01T00:00:00") });
    fixture.dispatch.runner.answer = ({ type }) => (type === "Scheduled" ? undefined : done);
    await fixture.advance(hour);
    expect(fixture.runs).toHaveLength(1);
    fixture.dispatch.runner.answer = () => done;
    await fixture.dispatch.runner.end("nightly");
    await fixture.advance(minute);
    expect(fixture.runs).toHaveLength(2);
    expect(fixture.runs[1]?.flags.missed).toBe(true);
    await fixture.advance(30 * minute);
    expect(fixture.runs.slice(2).map(({ flags }) => flags.missed)).toEqual([undefined, undefined, undefined]);
  });
});

const flagRepeats = (told: string, index: number) => (index === 0 ? told : `${told} !`);

describe("a downtime", () => {
  const clock = () => at("2026-03-01T12:00:00");

  test.each([
    ["Once", ["2026-03-04T03:00 missed"]],
    ["Skip", []],
    ["All", ["2026-03-02T03:00 missed", "2026-03-03T03:00 missed", "2026-03-04T03:00 missed"]],
  ] as const)("of three days leaves with missed: %s the runs %j", async (missed, told) => {
    for (const end of ["killed", "stopped"] as const) {
      const fixture = await ScheduleFixture.open(schedule({ missed }), { clock: clock() });
      await fixture[end](3 * day, schedule({ missed }));
      await fixture.advance(minute);
      expect(fixture.told).toEqual(told);
      await fixture.advance(day);
      expect(fixture.told).toEqual([...told, "2026-03-05T03:00"]);
    }
  });

  test("with no time in it leaves none", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: clock() });
    await fixture.killed(hour);
    await fixture.advance(minute);
    expect(fixture.told).toEqual([]);
  });

  test("leaves with missed: All the last hundred, in order", async () => {
    const of = every(minute, { missed: "All" });
    const fixture = await ScheduleFixture.open(of, { clock: clock() });
    await fixture.killed(day, of);
    await fixture.advance(10_000);
    const late = fixture.runs.filter(({ flags }) => flags.missed);
    const times = late.map(({ flags }) => Date.parse(flags.scheduledFor ?? ""));
    expect(times).toHaveLength(100);
    expect(times.every((time, index) => index === 0 || time === (times[index - 1] ?? 0) + minute)).toBe(true);
    expect(times.at(-1)).toBeGreaterThan(fixture.clock.now() - 2 * minute);
  });

  test("by a kill during a run repeats that run, flagged, with its attempt counted", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    fixture.dispatch.runner.answer = () => undefined;
    await fixture.advance(2 * minute);
    fixture.dispatch.runner.answer = () => done;
    await fixture.killed(day);
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T03:00", "2026-03-01T03:00 #2 !", "2026-03-02T03:00 missed"]);
  });
});

test("after a power loss a run whose record may be gone comes flagged, and a later one does not", async () => {
  const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T12:00:00") });
  fixture.dispatch.disk.end = "power-loss";
  await fixture.killed(day);
  await fixture.advance(day);
  expect(fixture.told).toEqual(["2026-03-02T03:00 missed !", "2026-03-03T03:00"]);
});

describe("wall time that is set", () => {
  test("back by an hour repeats no run", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    await fixture.advance(10 * minute);
    fixture.clock.step(-hour);
    await fixture.advance(2 * hour);
    expect(fixture.told).toEqual(["2026-03-01T03:00"]);
  });

  test("back from a year that was a mistake does not silence the schedule, and no id is used twice", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:59:00") });
    await fixture.advance(2 * minute);
    fixture.clock.step(365 * day);
    await fixture.advance(2 * minute);
    fixture.clock.step(-365 * day - hour);
    await fixture.advance(hour);
    expect(fixture.told).toEqual(["2026-03-01T03:00", "2027-03-01T03:00 missed", "2026-03-01T03:00"]);
    expect(new Set(fixture.runs.map(({ id }) => id)).size).toBe(3);
    expect(fixture.dispatch.warnings.map(({ msg }) => msg)).toEqual(["clock set back, schedule starts over"]);
  });

  test("right again, after a start at a time far ahead, its runs are no missed ones", async () => {
    for (const missed of ["Once", "Skip"] as const) {
      const of = schedule({ missed });
      const fixture = await ScheduleFixture.open(of, { clock: at("2026-03-01T12:00:00") });
      await fixture.killed(365 * day, of);
      await fixture.advance(minute);
      const before = fixture.told.length;
      fixture.clock.step(-365 * day);
      await fixture.advance(day);
      expect(fixture.told.slice(before)).toEqual(["2026-03-02T03:00"]);
    }
  });

  test("forward past its times brings one run within half a minute, flagged", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T12:00:00") });
    fixture.clock.step(2 * day);
    await fixture.advance(30_000);
    expect(fixture.told).toEqual(["2026-03-03T03:00 missed"]);
  });

  test("forward by a machine's sleep is noticed as well", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T12:00:00") });
    fixture.clock.suspend(day);
    await fixture.advance(30_000);
    expect(fixture.told).toEqual(["2026-03-02T03:00 missed"]);
  });
});

describe("a position", () => {
  test("goes on when the trigger is renamed, and when it is named back: the last missed run comes, once", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:00:00") });
    await fixture.advance(2 * hour);
    await fixture.stopped(2 * day, schedule({ name: "other" }));
    await fixture.advance(minute);
    await fixture.stopped(day, schedule());
    await fixture.advance(minute);
    const missed = ["2026-03-03T03:00 missed", "2026-03-04T03:00 missed"];
    expect(fixture.told).toEqual(["2026-03-01T03:00", ...missed]);
    await fixture.advance(day);
    expect(fixture.told).toEqual(["2026-03-01T03:00", ...missed, "2026-03-05T03:00"]);
  });

  test("is not that of another cron: a changed one begins from now", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:00:00") });
    const changed = schedule({ times: { cron: "0 4 * * *", timeZone: "UTC" } });
    await fixture.stopped(day + 6 * hour, changed);
    await fixture.advance(minute);
    expect(fixture.told).toEqual([]);
    await fixture.advance(day);
    expect(fixture.told).toEqual(["2026-03-03T04:00"]);
  });

  test("outlives a change of what becomes of missed times", async () => {
    const fixture = await ScheduleFixture.open(schedule(), { clock: at("2026-03-01T02:00:00") });
    await fixture.stopped(day, schedule({ missed: "All" }));
    await fixture.advance(minute);
    expect(fixture.told).toEqual(["2026-03-01T03:00 missed"]);
  });
});

test("whatever happens to process and clock, no time is told twice unflagged, in order, and the newest is never left out", async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fc.nat(40 * minute) }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant("killed" as const), ms: fc.nat(3 * hour) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("stopped" as const), ms: fc.nat(3 * hour) }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant("step" as const), ms: fc.integer({ min: -hour / 2, max: hour }) }),
    },
  );
  const missed = fc.constantFrom("Once" as const, "All" as const);
  await fc.assert(
    fc.asyncProperty(
      missed,
      fc.array(step, { minLength: 1, maxLength: 12 }),
      fc.nat(9),
      async (policy, steps, jitter) => {
        const of = every(10 * minute, { missed: policy, jitterMs: jitter * minute });
        const fixture = await ScheduleFixture.open(of, { clock: at("2026-03-01T00:00:00") });
        for (const { type, ms } of steps) {
          if (type === "advance") await fixture.advance(ms);
          else if (type === "step") fixture.clock.step(ms);
          else await fixture[type](ms, of);
        }
        const { runner } = fixture.dispatch;
        await quiet(runner);
        // By then every due time has been delivered, or is covered by a later one that was.
        await fixture.advance(3 * hour);
        const runs = fixture.runs.map(({ flags, attempt, redelivered }) => ({
          time: Date.parse(flags.scheduledFor ?? ""),
          again: attempt > 1 || redelivered,
        }));
        const first = runs.filter(({ again }) => !again).map(({ time }) => time);
        expect(first).toEqual([...new Set(first)].sort((a, b) => a - b));
        for (const { time, again } of runs) if (again) expect(first).toContain(time);
        expect(Math.max(...first)).toBeGreaterThan(fixture.clock.now() - 20 * minute);
        if (policy === "All")
          for (const time of first) expect(time === first[0] || first.includes(time - 10 * minute)).toBe(true);
      },
    ),
    { numRuns: 40 },
  );
});
