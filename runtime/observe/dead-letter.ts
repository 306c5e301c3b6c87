import { z } from "zod";
import type { ErrorCode } from "../base/errors.ts";
import { parseExactly } from "../base/exact-json.ts";
import type { DeadLetter, DeadLetterSummary } from "../journal/batch.ts";
import { isCode } from "./failure.ts";

const errorSchema = z.object({ name: z.string(), message: z.string(), stack: z.string(), code: z.string().optional() });

/** A dead letter's id. In a fleet it begins with the number of the slot that holds the letter. */
export const deadLetterId = /^(?:\d{1,4}-)?\d{1,15}$/;

/** A dead letter in a list, as JSON for the endpoints and the command. */
export const deadLetterRowSchema = z.object({
  /** The id that `show`, `replay` and `drop` take. */
  id: z.string(),
  function: z.string(),
  trigger: z.string(),
  eventId: z.string(),
  type: z.string(),
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  attempts: z.number(),
  /** ISO 8601. */
  failedAt: z.string(),
  error: errorSchema,
  /** Its body was dropped to keep its function within its limit, so it cannot be replayed. */
  bodyDropped: z.boolean().optional(),
});
export type DeadLetterRow = z.infer<typeof deadLetterRowSchema>;

/** A complete dead letter, including the event's body and flags. */
export const deadLetterSchema = deadLetterRowSchema.extend({
  flags: z.record(z.string(), z.unknown()),
  /** Absent if its body was dropped. */
  object: z.unknown().optional(),
  oldObject: z.unknown().optional(),
});
export type DeadLetterDetail = z.infer<typeof deadLetterSchema>;

/** The answer to a replay. */
export const replayAnswerSchema = z.object({
  /** Events that wait on disk until their function is loaded, and why it is not, if that is known. */
  waiting: z
    .array(
      z.object({
        function: z.string(),
        events: z.number(),
        code: z.custom<ErrorCode>(isCode).optional().catch(undefined),
        message: z.string().optional(),
      }),
    )
    .default([]),
});

/** Converts one dead letter of a list. */
export function describeSummary(letter: DeadLetterSummary): DeadLetterRow {
  return {
    id: letter.letter,
    function: letter.function,
    trigger: letter.trigger,
    eventId: letter.id,
    type: letter.type,
    apiVersion: letter.apiVersion,
    kind: letter.kind,
    namespace: letter.namespace,
    name: letter.name,
    attempts: letter.attempts,
    failedAt: new Date(letter.failedAt).toISOString(),
    error: letter.error,
    ...(letter.bodyDropped && { bodyDropped: true }),
  };
}

/** Converts a complete dead letter. */
export function describeDeadLetter(letter: DeadLetter): DeadLetterDetail {
  return {
    ...describeSummary(letter),
    flags: letter.flags,
    ...(letter.bodyDropped ? {} : { object: readJson(letter.body) }),
    ...(letter.oldBody ? { oldObject: readJson(letter.oldBody) } : {}),
  };
}

/** A body that is not JSON is shown as text: it may be why the event failed. */
function readJson(body: Buffer): unknown {
  const text = body.toString("utf8");
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}
