import type { ScheduleReport } from "../../engine/function-dispatch.ts";
import type { Schedule } from "../../manifest/function.ts";
import { scheduleKind, scheduleText } from "../../manifest/schedule.ts";
import type { TriggerExplanation } from "../../observe/explanation.ts";

/** Explains when a schedule last ran and when it runs next. `trouble`: why its function does not run as it should. */
export function explainSchedule(
  schedule: Schedule,
  { isElsewhere, next, isBusy, runs: past }: ScheduleReport,
  trouble: string | undefined,
  show: (text: string) => string,
): TriggerExplanation {
  const runs = past.map(({ at, type, resourceVersion, attempt, outcome, durationMs, error }) => ({
    at: new Date(at).toISOString(),
    type,
    resourceVersion: new Date(Number(resourceVersion)).toISOString(),
    attempt,
    outcome,
    durationMs,
    ...(error !== undefined && { error: show(error) }),
  }));
  const head = { trigger: schedule.name, ...scheduleKind, checks: [], filtered: [], runs };
  if (isElsewhere) return { ...head, reason: "shard", why: "it runs in another shard of the function" };
  const when = next === undefined ? "never again" : `at ${new Date(next).toISOString()}`;
  const says = `${scheduleText(schedule)}: runs ${when}`;
  const answer =
    trouble === undefined ? answerOf(runs[0], isBusy, says) : ({ reason: "function", why: trouble } as const);
  return { ...head, ...answer, next: says };
}

function answerOf(
  last: TriggerExplanation["runs"][number] | undefined,
  isBusy: boolean,
  next: string,
): Pick<TriggerExplanation, "reason" | "why"> {
  if (isBusy)
    return { reason: "queue", why: "a run waits, or is under way; the times that pass meanwhile wait for it" };
  if (!last) return { reason: "nothing", why: `it has not run since the function was loaded; ${next}` };
  if (last.outcome === "ok") return { reason: "fired", why: `it did run: for ${last.resourceVersion}` };
  return { reason: "givenUp", why: `its run for ${last.resourceVersion} was given up after attempt ${last.attempt}` };
}
