import { z } from "zod";
import { type ErrorCode, errorCodes, WatchfireError } from "../base/errors.ts";

/** Whether a text of another process is a code that this version knows. */
export const isCode = (code: unknown): code is ErrorCode => typeof code === "string" && Object.hasOwn(errorCodes, code);

/** A failed request to the endpoints: a message for people, and the parts of the fault for the command. */
export const failureSchema = z.object({
  error: z.string(),
  fault: z
    .object({
      code: z.custom<ErrorCode>(isCode),
      what: z.string(),
      actual: z.unknown().optional(),
      hint: z.string(),
    })
    .optional(),
});

/** Returns a failure as a response body. */
export function describeFailure(error: Error): z.infer<typeof failureSchema> {
  if (!(error instanceof WatchfireError)) return { error: error.message };
  const { what, actual } = error.detail;
  const fault = { code: error.code, what, hint: error.hint, ...(actual !== undefined && { actual }) };
  return { error: error.message, fault };
}
