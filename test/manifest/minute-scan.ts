import fc from "fast-check";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A moment at which a zone's clocks change, to the minute, and the change in minutes: forward is positive. */
export interface ClockChange {
  readonly zone: string;
  readonly at: number;
  readonly byMinutes: number;
}

/** Returns a function that reads a zone's local time, in minutes as if that were UTC. */
export function wallReader(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  return (at) => Date.parse(`${format.format(at).replace(" ", "T")}Z`) / minuteMs;
}

/**
 * All changes of a zone's clocks between two moments. Found by comparing the clocks every two days, then each hour, then each
 * minute.
 */
export function changesOf(zone: string, from: number, to: number): ClockChange[] {
  return changesIn(zone, wallReader(zone), [from, to], [48 * hourMs, hourMs, minuteMs]);
}

function changesIn(
  zone: string,
  wall: (at: number) => number,
  [from, to]: readonly [number, number],
  [step = minuteMs, ...finer]: readonly number[],
): ClockChange[] {
  const found: ClockChange[] = [];
  let before = wall(from);
  for (let at = from + step; at < to + step; at += step) {
    const after = wall(at);
    const byMinutes = after - before - step / minuteMs;
    before = after;
    if (byMinutes === 0) continue;
    if (finer.length === 0) found.push({ zone, at, byMinutes });
    else found.push(...changesIn(zone, wall, [at - step, at], finer));
  }
  return found;
}

/** A cron expression whose fields are known as numbers, so that no cron parser is needed. */
export interface KnownCron {
  readonly text: string;
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** Days of the week; all seven for `*`. */
  readonly weekdays: readonly number[];
  readonly startsWithStar: boolean;
}

interface Field {
  readonly text: string;
  readonly values: readonly number[];
}

const range = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

function fieldOf(size: number, steps: readonly number[]): fc.Arbitrary<Field> {
  const value = fc.integer({ min: 0, max: size - 1 });
  return fc.oneof(
    { weight: 4, arbitrary: value.map((one) => ({ text: `${one}`, values: [one] })) },
    fc.constant({ text: "*", values: range(0, size - 1) }),
    fc.constantFrom(...steps).map((step) => ({ text: `*/${step}`, values: range(0, size - 1, step) })),
    fc.uniqueArray(value, { minLength: 2, maxLength: 4 }).map((values) => ({ text: values.join(","), values })),
    fc.tuple(value, value).map(([a, b]) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)];
      return { text: `${from}-${to}`, values: range(from, to) };
    }),
  );
}

const cronOf = (minute: Field, hour: Field, weekdays: readonly number[]): KnownCron => ({
  text: `${minute.text} ${hour.text} * * ${weekdays.length === 7 ? "*" : weekdays.join(",")}`,
  minutes: minute.values,
  hours: hour.values,
  weekdays,
  startsWithStar: minute.text.startsWith("*") || hour.text.startsWith("*"),
});

const one = (value: number): Field => ({ text: `${value}`, values: [value] });

/** A schedule with one time a day. */
export const daily = (hour: number, minute: number): KnownCron => cronOf(one(minute), one(hour), range(0, 6));

/** A schedule that runs every so many minutes of each hour. */
export const everyMinutes = (step: number): KnownCron =>
  cronOf({ text: `*/${step}`, values: range(0, 59, step) }, { text: "*", values: range(0, 23) }, range(0, 6));

/** Any expression without days of the month. */
export const anyCron: fc.Arbitrary<KnownCron> = fc
  .tuple(
    fieldOf(60, [5, 7, 15, 20, 30]),
    fieldOf(24, [2, 3, 6, 12]),
    fc.oneof({ weight: 3, arbitrary: fc.constant(range(0, 6)) }, fc.subarray(range(0, 6), { minLength: 1 })),
  )
  .map(([minute, hour, weekdays]) => cronOf(minute, hour, weekdays));

/**
 * Finds the times of a schedule by reading a zone's local time each minute: the reference for `CronTimes`. A time runs in the
 * minute in which the clocks show it, or first show a later one.
 */
export class MinuteScan {
  private readonly walls: readonly number[];
  private readonly from: number;

  /** @param from no change of clocks lies within a day after it */
  constructor(zone: string, from: number, to: number) {
    const wall = wallReader(zone);
    this.from = from;
    this.walls = Array.from({ length: (to - from) / minuteMs }, (_, index) => wall(from + index * minuteMs));
  }

  runs(cron: KnownCron): number[] {
    const [minutes, hours, weekdays] = [new Set(cron.minutes), new Set(cron.hours), new Set(cron.weekdays)];
    const isHourly = hours.size === 24;
    const goesOn = isHourly || cron.startsWithStar;
    const matches = (wall: number) =>
      minutes.has(wall % 60) &&
      hours.has(Math.floor(wall / 60) % 24) &&
      weekdays.has(new Date(wall * minuteMs).getUTCDay());
    const found: number[] = [];
    let newest = (this.walls[0] ?? 0) - 1;
    for (const [index, wall] of this.walls.entries()) {
      const skipped = range(newest + 1, wall - 1);
      const isSkippedRun = skipped.some(matches) && !(isHourly && skipped.length % 60 === 0);
      const isShownRun = matches(wall) && (wall > newest || goesOn);
      if (isSkippedRun || isShownRun) found.push(this.from + index * minuteMs);
      newest = Math.max(newest, wall);
    }
    return found;
  }
}
