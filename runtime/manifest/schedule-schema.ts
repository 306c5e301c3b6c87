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
    .describe("IANA name of the zone that `cron` is read in, such as Europe/Berlin. Left out: UTC."),
  every: duration(longestIntervalMs)
    .optional()
    .describe("The time between two runs, from 1s to 744h. Each trigger has an offset of its own, which stays."),
  jitter: duration(longestJitterMs)
    .optional()
    .describe("Each run comes up to so much later, by chance. Left out: at its time."),
  missed: z
    .enum(["Once", "Skip", "All"])
    .default("Once")
    .describe(
      "Times that passed without a run: one run for all of them, flagged; none; or one for each of the last 100.",
    ),
});
