import type { CollectedLine } from "../observe/function-log.ts";
import { type EndedRun, runKey } from "../observe/run-log.ts";

/** Quiet runs of one batch at most, and per second. Writing each run of a fast handler costs a fifth of its speed. */
const mostQuiet = 250;
const quietPerMs = 0.5;
/** Quiet runs of each function of a batch at least. */
const leastOfEach = 2;

/** How many more quiet runs may be written. */
export class QuietRate {
  room = mostQuiet;
  private at = 0;

  /** `now`: monotonic, in milliseconds. */
  refill(now: number): void {
    this.room = Math.min(mostQuiet, this.room + (now - this.at) * quietPerMs);
    this.at = now;
  }
}

/**
 * Returns the runs of a batch that are written. A quiet run succeeded at once, made no call and logged nothing; of those, each function's
 * newest are written, in equal shares. All others are.
 * @param rate loses the quiet ones that are returned
 */
export function noteworthy(
  runs: readonly EndedRun[],
  lines: readonly CollectedLine[],
  rate: Pick<QuietRate, "room">,
): readonly EndedRun[] {
  let quiet = runs.filter(isQuiet);
  if (quiet.length > rate.room) {
    const heard = new Set(lines.flatMap(({ function: name, run }) => (run === undefined ? [] : `${name}\n${run}`)));
    quiet = quiet.filter((run) => !heard.has(runKey(run)));
  }
  if (quiet.length <= rate.room) {
    rate.room -= quiet.length;
    return runs;
  }
  const left = new Set<EndedRun>();
  let { room } = rate;
  // The smallest first, so that what they do not need is shared by the others.
  const groups = [...Map.groupBy(quiet, (run) => run.function).values()].sort((a, b) => a.length - b.length);
  for (const [index, group] of groups.entries()) {
    const taken = Math.min(group.length, Math.max(leastOfEach, Math.floor(room / (groups.length - index))));
    room = Math.max(0, room - taken);
    for (const run of group.slice(0, group.length - taken)) left.add(run);
  }
  rate.room = room;
  return runs.filter((run) => !left.has(run));
}

const isQuiet = ({ outcome, attempt, redelivered, calls, batch }: EndedRun): boolean =>
  outcome.type === "ok" && outcome.failed === undefined && attempt === 1 && !redelivered && !calls && !batch;
