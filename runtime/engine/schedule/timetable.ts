import { createHash } from "node:crypto";
import { CronTimes } from "../../manifest/cron.ts";
import type { Schedule } from "../../manifest/function.ts";

/** Times of one schedule, in epoch milliseconds: the same in every process, so that none is told twice. */
export class Timetable {
  private readonly seed: string;
  private readonly jitterMs: number;
  private readonly times: Pick<CronTimes, "next" | "before">;

  /** @param owner whose it is: functions with the same interval do not all begin at once */
  constructor({ times, jitterMs }: Pick<Schedule, "times" | "jitterMs">, owner: string) {
    this.seed = owner;
    this.jitterMs = jitterMs;
    this.times =
      "cron" in times
        ? new CronTimes(times.cron, times.timeZone)
        : new Interval(times.everyMs, Math.floor(share(owner) * times.everyMs));
  }

  /** The first time after `after`; undefined where there is none. */
  next(after: number): number | undefined {
    return this.times.next(after);
  }

  /** The times after `after` whose runs were to begin by `now`, oldest first; of more than `most` the last ones. */
  due(after: number, now: number, most: number): number[] {
    const safe = now - this.jitterMs;
    const due = this.times.before(safe + 1, most).filter((time) => time > after);
    // One that still waits for its moment holds those after it: runs come in the order of their times.
    let time = this.next(Math.max(after, safe));
    while (time !== undefined && this.beginOf(time) <= now) {
      due.push(time);
      time = this.next(time);
    }
    return due.slice(-most);
  }

  /** When the run of a time begins: then, or up to the jitter later. */
  beginOf(time: number): number {
    return time + Math.floor(share(`${this.seed}/${time}`) * this.jitterMs);
  }
}

/** Times that lie equally far apart, counted from 1970. */
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

/** A share in [0, 1) that a text always has. */
function share(text: string): number {
  return createHash("sha256").update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}
