import { Cron } from "croner";

/**
 * The times of a cron expression of five fields, in a time zone. When clocks go forward, a time that they skip comes at the
 * first moment after it. When they go back, a time that they show twice comes the first time; `*` and steps go on through both.
 */
export class CronTimes {
  private readonly cron: Cron;

  /** Throws, with words for its author, where the expression or the zone cannot be read, or names no time at all. */
  constructor(expression: string, timeZone: string) {
    this.cron = new Cron(expression, { timezone: timeZone, mode: "5-part", paused: true });
    if (this.next(0) === undefined) throw new Error("no day has such a time");
  }

  /** The first time after `after`; epoch milliseconds. Undefined where there is none. */
  next(after: number): number | undefined {
    return this.cron.nextRun(new Date(after))?.getTime();
  }

  /** The last times before `before`, `most` at most, oldest first. */
  before(before: number, most: number): number[] {
    const found = this.cron.previousRuns(most, new Date(before)).map((time) => time.getTime());
    return found.reverse();
  }
}

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
