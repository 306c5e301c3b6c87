import { parseDuration } from "@watchfire/sdk";
import { z } from "zod";
import { suggest } from "../base/suggest.ts";
import { cronFault, isTimeZone } from "./cron.ts";
import { duration } from "./duration-schema.ts";
import { type FunctionManifest, ownApiVersion, type Schedule } from "./function.ts";
import type { RuleFault } from "./rule-fault.ts";

const longestIntervalMs = 31 * 24 * 3_600_000;
const longestJitterMs = 24 * 3_600_000;
/** Longest expression that can be useful: each of the five fields written out in full. */
const longestCron = 500;

/** Schema of a trigger's `schedule`. `scheduleFaults` has the rules between its fields. */
export const scheduleSchema = z.strictObject({
  cron: z
    .string()
    .max(longestCron)
    .optional()
    .describe("Five fields: minute, hour, day of the month, month, day of the week. Not together with `every`."),
  timeZone: z
    .string()
    .optional()
    .describe("IANA name of the time zone of `cron`, such as Europe/Berlin. Default: UTC."),
  every: duration(longestIntervalMs)
    .optional()
    .describe("The time between two runs, from 1s to 744h. Each trigger has its own fixed offset."),
  jitter: duration(longestJitterMs)
    .optional()
    .describe("Each run is delayed by a random time up to this. Default: no delay."),
  missed: z
    .enum(["Once", "Skip", "All"])
    .default("Once")
    .describe(
      "Handling of times that passed without a run. Once: one flagged run for all of them. Skip: no run. All: one run for each of the last 100.",
    ),
});

/** Kind that is used in place of the object's for events without an object. */
export const scheduleKind = { apiVersion: ownApiVersion, kind: "Schedule" } as const;

/** Returns the checked form of a trigger's `schedule`. @param index its place among the triggers */
export function scheduleOf(
  name: string | undefined,
  { cron, timeZone = "UTC", every, jitter, missed }: z.infer<typeof scheduleSchema>,
  index: number,
): Schedule {
  const milliseconds = (text = "0s") => parseDuration(text) ?? 0;
  const times = cron === undefined ? { everyMs: milliseconds(every) } : { cron, timeZone };
  return { name: name ?? "schedule", index, times, jitterMs: milliseconds(jitter), missed };
}

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

/** Shortest interval, in milliseconds. With a shorter one, a run would begin before the previous one's record is on disk. */
const shortestIntervalMs = 1_000;

const invalid = (path: RuleFault["path"], what: string, hint?: string): RuleFault => ({
  code: "WF_MANIFEST_INVALID_VALUE",
  path,
  what,
  ...(hint !== undefined && { hint }),
});

/** Checks rules between a trigger's `watch` and `schedule`, and within the latter, in a raw document. */
export function* scheduleFaults(trigger: Record<string, unknown>, path: RuleFault["path"]): Generator<RuleFault> {
  const { watch, schedule } = trigger;
  if (watch !== undefined && schedule !== undefined) {
    yield invalid([...path, "schedule"], "watch and schedule exclude each other", "use two triggers");
  }
  if (typeof schedule !== "object" || schedule === null || Array.isArray(schedule)) return;
  yield* fieldFaults(schedule as Record<string, unknown>, [...path, "schedule"]);
}

function* fieldFaults(
  { cron, timeZone, every, jitter }: Record<string, unknown>,
  path: RuleFault["path"],
): Generator<RuleFault> {
  if (cron !== undefined && every !== undefined) {
    yield invalid([...path, "every"], "cron and every exclude each other", "use two triggers");
  }
  if (cron === undefined && every === undefined) {
    yield {
      code: "WF_MANIFEST_MISSING_FIELD",
      path,
      what: "cron or every is missing",
      hint: 'such as `cron: "0 3 * * *"` or `every: 10m`',
    };
  }
  if (timeZone !== undefined && cron === undefined && every !== undefined) {
    yield invalid([...path, "timeZone"], "`every` has no time zone", "leave it out");
  }
  const zone = typeof timeZone === "string" ? timeZone : "UTC";
  if (!isTimeZone(zone)) {
    const near = suggest(zone, Intl.supportedValuesOf("timeZone"));
    const hint = near === undefined ? "such as Europe/Berlin" : `did you mean ${near}?`;
    yield invalid([...path, "timeZone"], "there is no such time zone", hint);
  }
  const fault = typeof cron === "string" && isTimeZone(zone) ? cronFault(cron, zone) : undefined;
  if (fault !== undefined) yield invalid([...path, "cron"], fault, 'such as "0 3 * * *": each day at three');
  const [everyMs, jitterMs] = [every, jitter].map((value) =>
    typeof value === "string" ? parseDuration(value) : undefined,
  );
  if (everyMs !== undefined && everyMs < shortestIntervalMs) {
    yield invalid([...path, "every"], "expected at least 1s");
  }
  if (everyMs !== undefined && jitterMs !== undefined && jitterMs >= everyMs) {
    yield invalid([...path, "jitter"], `jitter (${jitter}) is not less than every (${every})`, "lower jitter");
  }
}
