import { z } from "zod";
import { duration } from "./duration-schema.ts";

const longestIntervalMs = 31 * 24 * 3_600_000;
const longestJitterMs = 24 * 3_600_000;
/** Longest expression that can be useful: each of the five fields written out in full. */
const longestCron = 500;

/** Schema of a trigger's `schedule`. Rules between its fields are in schedule-rules.ts. */
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
