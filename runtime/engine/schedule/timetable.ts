import { createHash } from "node:crypto";
import { CronTimes } from "../../manifest/cron.ts";
import type { Schedule } from "../../manifest/function.ts";

/** The times of one schedule, in epoch milliseconds. They are the same in every process, so that no time runs twice. */
export class Timetable {
  private readonly seed: string;
  private readonly jitterMs: number;
  private readonly times: Pick<CronTimes, "next" | "before">;

  /** @param owner identifies the schedule: functions with the same interval do not all start at once */
  constructor({ times, jitterMs }: Pick<Schedule, "times" | "jitterMs">, owner: string) {
    this.seed = owner;
    this.jitterMs = jitterMs;
    this.times =
      "cron" in times
        ? new CronTimes(times.cron, times.timeZone)
        : new Interval(times.everyMs, Math.floor(share(owner) * times.everyMs));
  }

  /** Returns the first time after `after`; `undefined` if there is no such time. */
  next(after: number): number | undefined {
    return this.times.next(after);
  }

  /** Returns the times after `after` whose runs were due by `now`, oldest first; at most the last `most` of them. */
  due(after: number, now: number, most: number): number[] {
    const safe = now - this.jitterMs;
    const due = this.times.before(safe + 1, most).filter((time) => time > after);
    // A time that waits for its jitter holds back those after it: runs are emitted in the order of their times.
    let time = this.next(Math.max(after, safe));
    while (time !== undefined && this.beginOf(time) <= now) {
      due.push(time);
      time = this.next(time);
    }
    return due.slice(-most);
  }

  /** Returns the moment at which the run of a time begins: the time plus up to the jitter. */
  beginOf(time: number): number {
    return time + Math.floor(share(`${this.seed}/${time}`) * this.jitterMs);
  }
}

/** Times at equal intervals, counted from 1970. */
class Interval {
  private readonly everyMs: number;
  private readonly offsetMs: number;

  constructor(everyMs: number, offsetMs: number) {
    this.everyMs = everyMs;
    this.offsetMs = offsetMs;
  }

  next(after: number): number {
    return (Math.floor((after - this.offsetMs) / this.everyMs) + 1) * this.everyMs + this.offsetMs;
  }

  before(before: number, most: number): number[] {
    const last = this.next(before - 1) - this.everyMs;
    return Array.from({ length: most }, (_, index) => last - (most - 1 - index) * this.everyMs);
  }
}

/** Maps a text to a number in [0, 1), always the same one. */
function share(text: string): number {
  return createHash("sha256").update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}
