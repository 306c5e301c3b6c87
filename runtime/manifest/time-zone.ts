const hourMs = 3_600_000;

/** Offsets of all zones are between -12 h and +14 h, so the moments of a wall time are in this window around it, read as UTC. */
const window = { before: 15 * hourMs, after: 13 * hourMs };

/** A wall-clock time: its digits, read as UTC, in epoch milliseconds. */
export type WallTime = number;

/** A clock change: its first moment, in epoch milliseconds, and by how much clocks go forward, in milliseconds. */
interface ClockChange {
  readonly at: number;
  readonly byMs: number;
}

/** The moments at which clocks show a wall time, one or two, or the change that skips it. */
type Moments = { readonly shown: readonly number[] } | { readonly skippedBy: ClockChange };

/** A time zone: its clock offsets and their changes. No zone changes its clocks twice within 28 hours. */
export class TimeZone {
  private readonly format: Intl.DateTimeFormat;

  /**
   * @param name of the IANA database, or an offset such as `+05:30`
   * @throws RangeError if the system has no such zone
   */
  constructor(name: string) {
    this.format = new Intl.DateTimeFormat("en-US", { timeZone: name, year: "numeric", timeZoneName: "longOffset" });
  }

  /** Returns the wall time at `at`, in epoch milliseconds. */
  wallAt(at: number): WallTime {
    return at + this.offsetAt(at);
  }

  /** Returns the moments at which clocks show a wall time, in epoch milliseconds. */
  momentsOf(wall: WallTime): Moments {
    const before = this.offsetAt(wall - window.before);
    const after = this.offsetAt(wall + window.after);
    const [first, second] = [wall - before, wall - after];
    if (before === after) return { shown: [first] };
    const isFirst = this.offsetAt(first) === before;
    const isSecond = this.offsetAt(second) === after;
    if (isFirst) return { shown: isSecond ? [first, second] : [first] };
    const change = isSecond ? undefined : this.changeBetween(second, first);
    return change ? { skippedBy: change } : { shown: [second] };
  }

  /** Returns by how much clocks are ahead of UTC, in milliseconds. */
  offsetAt(at: number): number {
    const found = offsetText.exec(this.format.format(at));
    const [hours, minutes, seconds] = [found?.[2], found?.[3], found?.[4]].map((text = "0") => Number(text));
    const ms = ((hours ?? 0) * 60 + (minutes ?? 0)) * 60_000 + (seconds ?? 0) * 1_000;
    return found?.[1] === "-" ? -ms : ms;
  }

  /**
   * Returns the clock change after `from`, up to `to`, which must be at most 28 hours later; `undefined` if there is no change.
   */
  changeBetween(from: number, to: number): ClockChange | undefined {
    const before = this.offsetAt(from);
    const byMs = this.offsetAt(to) - before;
    if (byMs === 0) return undefined;
    let [last, at] = [from, to];
    while (at - last > 1) {
      const middle = Math.floor((last + at) / 2);
      if (this.offsetAt(middle) === before) last = middle;
      else at = middle;
    }
    return { at, byMs };
  }
}

/** Matches `GMT`, `GMT+05:30`, or an offset with seconds before 1972. */
const offsetText = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;
