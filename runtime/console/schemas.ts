import { z } from "zod";
import { functionReportSchema } from "../control/function-status/function-report.ts";
import { statusAnswerSchema } from "../control/status-answer.ts";
import { runsAnswerSchema } from "../observe/control-api.ts";

// The answers of the console's own routes. Those of the commands' routes are in `observe`.

/** One thing that needs a person. */
const attentionSchema = z.object({
  /** `bad`: something does not run. `warn`: it runs, and not as it should. */
  severity: z.enum(["bad", "warn"]),
  title: z.string(),
  /** The problem, in words. */
  text: z.string(),
  /** The remedy. */
  todo: z.string(),
  /** The page that shows it. */
  href: z.string().optional(),
});
export type Attention = z.infer<typeof attentionSchema>;

export const sourcesAnswerSchema = z.object({ sources: statusAnswerSchema.shape.sources.unwrap() });

export const functionsAnswerSchema = z.object({ functions: z.array(functionReportSchema) });

export const overviewSchema = z.object({
  version: z.string(),
  /** `active`, or `standby` while another replica runs the functions. */
  role: z.string(),
  /** Most urgent first. Empty if all is well. */
  attention: z.array(attentionSchema),
  ...functionsAnswerSchema.shape,
  ...sourcesAnswerSchema.shape,
});

const stepSchema = z.object({
  /** The rule of this step: `kind`, `namespaces`, `labelSelector`, `events`, `condition NAME`, `handler` and so on. */
  name: z.string(),
  /** Its value in the manifest. */
  rule: z.string(),
  /** Number of events that this step recently held back; absent if the API server applies it, which the runtime does not see. */
  heldBack: z.number().optional(),
});

/** The way of an event to the handler, for one trigger. */
const triggerWaySchema = z.object({
  trigger: z.string(),
  steps: z.array(stepSchema),
  /** Events since the start of the runtime, by how they ended. */
  outcomes: z.object({
    received: z.number(),
    filtered: z.number(),
    ok: z.number(),
    retry: z.number(),
    deadLetter: z.number(),
    dropped: z.number(),
  }),
});
export type TriggerWay = z.infer<typeof triggerWaySchema>;

export const functionDetailSchema = z.object({
  function: functionReportSchema,
  ways: z.array(triggerWaySchema),
  /** The manifest as understood, with all defaults; without the values of `env`. Absent if it could not be read. */
  manifest: z.record(z.string(), z.unknown()).optional(),
});

const runRowSchema = runsAnswerSchema.shape.runs.element.extend({ function: z.string() });
export type RunRow = z.infer<typeof runRowSchema>;

export const runsQuestionSchema = z.strictObject({
  function: z.string().max(253).optional(),
  outcome: z.enum(["ok", "failed", "permanent"]).optional(),
  /** Part of `namespace/name`. */
  object: z.string().max(400).optional(),
  trigger: z.string().max(63).optional(),
  /** Runs that ended at this time or later, as ISO 8601. */
  since: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});
export type RunsQuestion = z.infer<typeof runsQuestionSchema>;

export const runSearchSchema = z.object({
  /** Newest first. */
  runs: z.array(runRowSchema),
  /** Describes where the shards are that are not part of the answer. */
  elsewhere: z.string().optional(),
});

const runErrorSchema = z.object({
  name: z.string(),
  message: z.string(),
  code: z.string().optional(),
  stack: z.string(),
  /** The lines around the place in the author's file. */
  frame: z.string().optional(),
});
export type RunError = z.infer<typeof runErrorSchema>;

export const runDetailSchema = z.object({
  function: z.string(),
  id: z.string(),
  /** Its attempts that are in memory, the first one first. Empty if no attempt has ended. */
  attempts: z.array(runRowSchema),
  /** The function's log lines of this run that are in memory, oldest first. */
  log: z.array(
    z.object({
      number: z.number(),
      time: z.string(),
      level: z.string(),
      message: z.string(),
      fields: z.record(z.string(), z.unknown()),
    }),
  ),
  /** The error of the last failed attempt. */
  error: runErrorSchema.optional(),
  /** The id of its dead letter. */
  deadLetter: z.string().optional(),
  /** Describes where other shards of the function are, which may have it. */
  elsewhere: z.string().optional(),
});
export type RunDetail = z.infer<typeof runDetailSchema>;

const errorGroupSchema = z.object({
  /** Identifies the group: a hash of code, place and message without variables. */
  fingerprint: z.string(),
  /** The error's code, or its name. */
  code: z.string(),
  /** The message of the last occurrence. */
  message: z.string(),
  /** The topmost frame in the author's files. */
  place: z.string().optional(),
  frame: z.string().optional(),
  functions: z.array(z.string()),
  count: z.number(),
  firstSeen: z.string(),
  lastSeen: z.string(),
  /** The ids of its dead letters that can be replayed. */
  deadLetters: z.array(z.string()),
  lastRun: z.object({ function: z.string(), id: z.string() }),
});
export type ErrorGroup = z.infer<typeof errorGroupSchema>;

export const errorsAnswerSchema = z.object({
  /** Last seen first. */
  groups: z.array(errorGroupSchema),
  /** There are more dead letters than were looked at. */
  more: z.boolean(),
});

/** The kind of data that changed, in an event of `/api/events`. */
export type Topic = "functions" | "runs" | "sources" | "dead-letters";

export const loginCodeSchema = z.object({ code: z.string(), expiresInSeconds: z.number() });
export const loginQuestionSchema = z.strictObject({ code: z.string().min(1).max(100) });
export const loginAnswerSchema = z.object({
  /** To be sent with each request, as `X-Watchfire-Proof`. */
  proof: z.string(),
});
