import type { FunctionManifest, Schedule } from "./function.ts";

/** Kind that is used in place of the object's for events without an object. */
export const scheduleKind = { apiVersion: "watchfire.dev/v1alpha1", kind: "Schedule" } as const;

/** Formats a schedule for people: `0 3 * * * Europe/Berlin`, or `every 10m`. */
export function scheduleText({ times }: Pick<Schedule, "times">): string {
  if ("cron" in times) return times.timeZone === "UTC" ? times.cron : `${times.cron} ${times.timeZone}`;
  const { everyMs } = times;
  const [unit, ms] = units.find(([, each]) => everyMs % each === 0) ?? ["ms", 1];
  return `every ${everyMs / ms}${unit}`;
}

const units = [
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Converts an index among the `watch` triggers to one in the manifest's list, which also contains schedules. */
export function placeOfWatch({ schedules }: Pick<FunctionManifest, "schedules">, index: number): number {
  let place = index;
  for (const schedule of schedules) if (schedule.index <= place) place++;
  return place;
}
