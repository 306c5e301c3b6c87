import { Cron } from "croner";
import { TimeZone, type WallTime } from "./time-zone.ts";

const hourMs = 3_600_000;

/** Longest reach of a clock change's effect before or after it, in milliseconds: no change is longer than a day. */
const nearMs = 25 * hourMs;

/**
 * Times of a cron expression of five fields, in a time zone. Croner finds the wall times; clock changes are handled here:
 *
 * - A wall time that clocks skip runs at the first moment after the gap, once for all times in the gap. A schedule that runs
 *   in every hour of the day has no such run if the gap is a whole number of hours, because each hour shown has its runs.
 * - A wall time that clocks show twice runs the first time. It runs both times if the minute or the hour begins with `*`,
 *   as in Vixie cron (`man 8 cron`), or if the schedule runs in every hour.
 */
export class CronTimes {
  /** Computes wall times, read as UTC. */
  private readonly cron: Cron;
  private readonly zone: TimeZone;
  /** Whether it has a run in each hour of a day. */
  private readonly isHourly: boolean;
  /** Whether it runs both times when clocks show a time twice. */
  private readonly goesOn: boolean;

  /** Throws, with a message for its author, if the expression or the zone cannot be read, or names no time at all. */
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

  /** Returns the first time after `after`, in epoch milliseconds; `undefined` if there is no such time. */
  next(after: number): number | undefined {
    const { zone } = this;
    const next = this.firstAfter(after, zone.wallAt(after));
    if (next === undefined || !this.goesOn) return next;
    // Clocks that go back repeat what they showed before `after`.
    const back = zone.changeBetween(after, Math.min(next, after + nearMs));
    if (back === undefined || back.byMs > 0) return next;
    const again = this.firstAfter(after, zone.wallAt(back.at) - 1);
    return again === undefined ? next : Math.min(next, again);
  }

  /** Returns the last times before `before`, at most `most`, oldest first. */
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
      // All runs of wall times before this one are before this moment.
      const complete = wall - Math.min(zone.offsetAt(wall - nearMs), zone.offsetAt(wall + nearMs));
      if ([...found].filter((time) => time >= complete).length >= most) break;
    }
    return [...found].sort((a, b) => a - b).slice(-most);
  }

  /** Returns the first run after a moment among the wall times after `from`. */
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

  /** Returns the runs of a wall time of the schedule, oldest first. */
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

/** Returns what is wrong with an expression in a time zone; `undefined` if it is valid. */
export function cronFault(expression: string, timeZone: string): string | undefined {
  // Croner also accepts dates and nicknames, which do not have five fields.
  if (expression.trim().split(/\s+/).length !== 5)
    return "expected five fields: minute, hour, day, month, day of the week";
  try {
    new CronTimes(expression, timeZone);
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).replace(/^(?:CronPattern|Cron): /, "");
  }
}

/** Whether the system has a time zone of this name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
