import { parseDuration } from "@watchfire/sdk";
import { z } from "zod";

export const durationPattern = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

/** Schema of a duration in whole milliseconds, written as text. @param most in milliseconds */
export const duration = (most: number) =>
  z
    .string()
    .regex(durationPattern, { error: "expected a duration such as 500ms, 30s or 5m" })
    .refine((text) => !durationPattern.test(text) || wholeMs(text, most), {
      error: `expected whole milliseconds above 0 and at most ${most / 1000}s`,
    });

const wholeMs = (text: string, most: number): boolean => {
  const ms = parseDuration(text) ?? 0;
  return Number.isInteger(ms) && ms > 0 && ms <= most;
};
