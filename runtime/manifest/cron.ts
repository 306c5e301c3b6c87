import { Cron } from "croner";
import { TimeZone, type WallTime } from "./time-zone.ts";

const hourMs = 3_600_000;

/** How far before or after a change of clocks its effect reaches, in milliseconds: no change is longer than a day. */
const nearMs = 25 * hourMs;

/**
 * The times of a cron expression of five fields, in a time zone. Croner finds the wall times. What becomes of one when clocks
 * change is decided here:
 *
 * - A wall time that clocks skip runs at the first moment after the gap, once for all that the gap skips. A schedule that runs
 *   in every hour of the day has no such run where the gap takes whole hours: no hour that clocks show lacks its runs.
 * - A wall time that clocks show twice runs the first time. It runs both times where the minute or the hour begins with `*`,
 *   as Vixie cron has it (`man 8 cron`), or where the schedule runs in every hour.
 */
export class CronTimes {
  /** Of wall times, read as UTC. */
  private readonly cron: Cron;
  private readonly zone: TimeZone;
  /** Whether it has a run in each hour of a day. */
  private readonly isHourly: boolean;
  /** Whether it runs both times where clocks show one twice. */
  private readonly goesOn: boolean;

  /** Throws, with words for its author, where the expression or the zone cannot be read, or names no time at all. */
  constructor(expression: string, timeZone: string) {
    this.zone = new TimeZone(timeZone);
    this.cron = readAsUtc(expression);
    if (this.cron.nextRun(new Date(0)) === null) throw new Error("no day has such a time");
    const [minute = "", hour = ""] = expression.trim().split(/\s+/);
    const isStar = (field: string) => /^[*?]/.test(field);
    this.isHourly = readAsUtc(`0 ${hour} * * *`)
      .nextRuns(24, beforeDay)
      .every((time, at) => time.getUTCHours() === at);
    this.goesOn = this.isHourly || isStar(hour) || isStar(minute);
  }

  /** The first time after `after`; epoch milliseconds. Undefined where there is none. */
  next(after: number): number | undefined {
    const { zone } = this;
    const next = this.firstAfter(after, zone.wallAt(after));
    if (next === undefined || !this.goesOn) return next;
    // Clocks that go back show again what they showed up to `after`.
    const back = zone.changeBetween(after, Math.min(next, after + nearMs));
    if (back === undefined || back.byMs > 0) return next;
    const again = this.firstAfter(after, zone.wallAt(back.at) - 1);
    return again === undefined ? next : Math.min(next, again);
  }

  /** The last times before `before`, `most` at most, oldest first. */
  before(before: number, most: number): number[] {
    const { zone } = this;
    const found = new Set<number>();
    let wall = before + Math.max(zone.offsetAt(before), zone.offsetAt(before - nearMs));
    for (;;) {
      const walls = this.cron.previousRuns(most, new Date(wall)).map((time) => time.getTime());
      for (const each of walls) for (const time of this.runsOf(each)) if (time < before) found.add(time);
      const oldest = walls.at(-1);
      if (oldest === undefined || walls.length < most) break;
      wall = oldest;
      // The runs of all wall times before it come before this.
      const complete = wall - Math.min(zone.offsetAt(wall - nearMs), zone.offsetAt(wall + nearMs));
      if ([...found].filter((time) => time >= complete).length >= most) break;
    }
    return [...found].sort((a, b) => a - b).slice(-most);
  }

  /** The first run after a moment of the wall times after `from`. */
  private firstAfter(after: number, from: WallTime): number | undefined {
    for (let wall = this.nextWall(from); wall !== undefined; wall = this.nextWall(wall)) {
      const run = this.runsOf(wall).find((time) => time > after);
      if (run !== undefined) return run;
    }
    return undefined;
  }

  private nextWall(after: WallTime): WallTime | undefined {
    return this.cron.nextRun(new Date(after))?.getTime();
  }

  /** When a wall time of the schedule runs, oldest first. */
  private runsOf(wall: WallTime): readonly number[] {
    const found = this.zone.momentsOf(wall);
    if ("shown" in found) return this.goesOn ? found.shown : found.shown.slice(0, 1);
    const { at, byMs } = found.skippedBy;
    return this.isHourly && byMs % hourMs === 0 ? [] : [at];
  }
}

const readAsUtc = (expression: string) => new Cron(expression, { utcOffset: 0, mode: "5-part", paused: true });

/** The moment before a day begins. */
const beforeDay = new Date(-1);

/** What is wrong with an expression in a time zone; undefined where nothing is. */
export function cronFault(expression: string, timeZone: string): string | undefined {
  // Croner reads a date as well, and nicknames; neither has five fields.
  if (expression.trim().split(/\s+/).length !== 5)
    return "expected five fields: minute, hour, day, month, day of the week";
  try {
    new CronTimes(expression, timeZone);
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replace(/^(?:CronPattern|Cron): /, "");
  }
}

/** Whether the system knows a time zone of this name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
