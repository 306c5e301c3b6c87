import { z } from "zod";
import { functionReportSchema } from "../control/function-status/function-report.ts";
import { statusAnswerSchema } from "../control/status-answer.ts";
import { runFiltersSchema, runRowSchema } from "../observe/control-api.ts";

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

const sourceSchema = statusAnswerSchema.shape.sources.unwrap().element.extend({
  lastBookmarkAgeMs: z.number().optional(),
  lastEventAgeMs: z.number().optional(),
  /** Rate of live changes in the last minute. Absent until it is known. */
  bytesPerSecond: z.number().optional(),
  reconnects: z.number().optional(),
  /** The last complete list, and why it was read. */
  lastList: z.object({ ageMs: z.number(), items: z.number(), tookMs: z.number(), why: z.string() }).optional(),
  lastError: z.object({ cause: z.string(), message: z.string(), ageMs: z.number() }).optional(),
  /** The functions that read it. */
  functions: z.array(z.string()).optional(),
  /** The replica that reads it, in a fleet. */
  replica: z.string().optional(),
});

/** Describes which replicas or shards are not part of an answer. */
const elsewhere = z.string().optional();

export const sourcesAnswerSchema = z.object({ sources: z.array(sourceSchema), elsewhere });

/** `meanMs`: mean duration of its attempts since the start, in milliseconds. */
const functionRowSchema = functionReportSchema.extend({ meanMs: z.number().optional() });
export type FunctionRow = z.infer<typeof functionRowSchema>;

export const functionsAnswerSchema = z.object({ functions: z.array(functionRowSchema), elsewhere });

const replicaSchema = z.object({
  name: z.string(),
  slots: z.array(z.number()),
  functions: z.array(z.string()),
  /** True if its answer is part of this one. */
  answers: z.boolean(),
});
export type ReplicaRow = z.infer<typeof replicaSchema>;

export const overviewSchema = z.object({
  version: z.string(),
  /** The replicas of a fleet, this one first. Absent without a fleet. */
  replicas: z.array(replicaSchema).optional(),
  /** The replica that holds the Lease, on a standby. */
  holder: z.string().optional(),
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
  /** Number of events that this step held back; absent if the API server applies it, which the runtime does not see. */
  heldBack: z.number().optional(),
  /** Number of events that have passed this step. */
  passed: z.number(),
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

/** The share of each part in the time of a function's last attempts, on average, in milliseconds. */
export const functionTimeSchema = z.object({
  /** Number of attempts that were looked at. 0 if no attempt is on record. */
  runs: z.number(),
  /** From the event's arrival to the start of the attempt. */
  waitedMs: z.number(),
  tookMs: z.number(),
  slowestMs: z.number(),
  cpuMs: z.number(),
  /** The calls that take longest, by kind or host: their number, the mean of one, and the share of one attempt. */
  calls: z.array(z.object({ name: z.string(), count: z.number(), meanMs: z.number(), ofRunMs: z.number() })),
});
export type FunctionTime = z.infer<typeof functionTimeSchema>;

export const sourceAnswerSchema = z.object({
  /** The handler's file, and its text as it runs. Absent if the code is not loaded. */
  file: z.string(),
  text: z.string().optional(),
});

export const runsQuestionSchema = runFiltersSchema.extend({
  function: z.string().max(253).optional(),
  /** Part of a log line of the run, in upper or lower case. Only the history has log lines. */
  log: z.string().max(400).optional(),
  /** Only runs with a log line that is a warning or an error. */
  logged: z.literal("warning").optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});
export type RunsQuestion = z.infer<typeof runsQuestionSchema>;

export const runSearchSchema = z.object({
  /** Newest first. */
  runs: z.array(runRowSchema),
  /** False if there is no history: these are at most 200 of each function, since the start. */
  history: z.boolean(),
  /** Describes which replicas or shards are not part of the answer. */
  elsewhere: z.string().optional(),
});

const listedCallSchema = z.object({
  /** `kube.get`, `fetch` and so on. */
  operation: z.string(),
  /** The object, or the method and host. */
  target: z.string(),
  /** `ok`, the error's class, or `refused`. */
  result: z.string(),
  /** The HTTP status, if a server answered. */
  status: z.number().optional(),
  /** When it began, as ISO 8601. */
  at: z.string(),
  durationMs: z.number(),
  /** Characters of the arguments, and of the answer. */
  sent: z.number(),
  received: z.number(),
});

const attemptSchema = runRowSchema.extend({
  /** The calls in the order in which they ended, the first 100. Absent if they are not on record. */
  listedCalls: z.array(listedCallSchema).optional(),
  /** The causes that woke a reconciled key. */
  causes: z.array(z.string()).optional(),
  /** The ids of a batch's events. */
  batch: z.array(z.string()).optional(),
  /** The object existed when the function was first deployed. */
  initial: z.boolean().optional(),
});
export type AttemptRow = z.infer<typeof attemptSchema>;

const runErrorSchema = z.object({
  name: z.string(),
  message: z.string(),
  code: z.string().optional(),
  stack: z.string(),
  /** The lines around the place in the author's file. */
  frame: z.string().optional(),
  /** The code at that place has changed since. */
  codeChanged: z.boolean().optional(),
});
export type RunError = z.infer<typeof runErrorSchema>;

export const runDetailSchema = z.object({
  function: z.string(),
  id: z.string(),
  /** Its attempts that are on record, the first one first. Empty if no attempt has ended. */
  attempts: z.array(attemptSchema),
  /** The function's log lines of this run that are on record, oldest first. */
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

export const runEventSchema = z.object({
  /** The place of its objects: memory, which has those of the last runs, or its dead letter. Absent if it is not on record. */
  from: z.enum(["memory", "deadLetter"]).optional(),
  /** The event, the run of a key or the events of a batch, as a fixture without secrets: see `watchfire test`. */
  fixture: z.record(z.string(), z.unknown()).optional(),
  /** The name of a file for it. */
  file: z.string().optional(),
  /** The folder that the runtime writes fixtures to. Absent if it does not write them. */
  savesTo: z.string().optional(),
});
export type RunEvent = z.infer<typeof runEventSchema>;

export const savedFixtureSchema = z.object({
  /** The path of the written file. */
  file: z.string(),
});

export const configurationSchema = z.object({
  versions: z.record(z.string(), z.string()),
  /** The options of the command that started it, as they hold. */
  flags: z.record(z.string(), z.unknown()),
  /** The place where it runs, and its cluster. */
  place: z.record(z.string(), z.string()),
  limits: z.record(z.string(), z.object({ value: z.number(), unit: z.string() })),
  /** The data folder's files, and its volume, in bytes. Sizes of the volume are absent if the system does not say. */
  disk: z.object({
    files: z.array(z.object({ name: z.string(), bytes: z.number() })),
    size: z.number().optional(),
    free: z.number().optional(),
  }),
});

export const revisionsAnswerSchema = z.object({
  /** The set that the function was deployed with. Absent if its code is of a folder. */
  set: z.string().optional(),
  /** The number of the deployed revision, if it has a record. */
  current: z.number().optional(),
  /** Newest first. */
  revisions: z.array(
    z.object({
      number: z.number(),
      /** ISO 8601; `null` if it is not known. */
      at: z.string().nullable(),
      /** The account, or why it is not known. */
      by: z.string(),
      commit: z.string().optional(),
      /** The work tree had changes that were not committed. */
      dirty: z.boolean().optional(),
      message: z.string(),
      /** Its change of the function, compared with the revision before; `unknown` if that is not on record. */
      change: z.enum(["added", "changed", "removed", "unchanged", "absent", "unknown"]),
    }),
  ),
});
export type RevisionsAnswer = z.infer<typeof revisionsAnswerSchema>;

/** The further answers of `watchfire dev`, which no other runtime has. */
export const devAnswerSchema = z.object({
  /** The present faults of types, as they were printed. */
  faults: z.array(z.object({ function: z.string().optional(), text: z.string() })),
  /** The sample files. Absent if objects cannot be applied. */
  samples: z.array(z.object({ file: z.string(), text: z.string() })).optional(),
});
export const applyQuestionSchema = z.strictObject({ text: z.string().min(1).max(200_000) });
export const applyAnswerSchema = z.object({ applied: z.array(z.string()), warnings: z.array(z.string()) });

export const changesQuestionSchema = z.strictObject({ function: z.string().max(253).optional() });
export const changesAnswerSchema = z.object({
  /** Newest first, at most 200. */
  changes: z.array(
    z.object({
      /** ISO 8601. */
      at: z.string(),
      who: z.string(),
      verb: z.string(),
      /** The changed functions. Only the one that was asked for, if one was. */
      functions: z.array(z.string()),
      set: z.string().optional(),
      revision: z.number().optional(),
      reason: z.string().optional(),
      result: z.string(),
      from: z.string().optional(),
    }),
  ),
  /** True if those before the start are known, as long as the history keeps them. */
  history: z.boolean(),
});

export const seriesQuestionSchema = z.strictObject({
  function: z.string().max(253).optional(),
  /** How many of the last samples. */
  points: z.coerce.number().int().min(1).max(360).default(60),
});

const sampledSchema = z.object({
  /** Events that ended in the handler or were given up, and failed attempts, in each step. */
  events: z.array(z.number()),
  errors: z.array(z.number()),
  /** Events that waited at the end of each step. */
  waiting: z.array(z.number()),
});

export const seriesAnswerSchema = z.object({
  /** When the first step ended, as ISO 8601. */
  from: z.string(),
  stepMs: z.number(),
  /** The sum of all functions. */
  sum: sampledSchema,
  functions: z.array(sampledSchema.extend({ name: z.string() })),
});

const errorGroupSchema = z.object({
  /** Identifies the group: a hash of code, place and message without variables. */
  fingerprint: z.string(),
  /** The error's code, or its name. */
  code: z.string(),
  /** The message of the last occurrence. */
  message: z.string(),
  /** The topmost frame in the author's files. */
  place: z.string().optional(),
  /** The lines around that place, as they were when it failed, if that is on record. */
  frame: z.string().optional(),
  /** The code at that place has changed since. */
  codeChanged: z.boolean().optional(),
  functions: z.array(z.string()),
  /** The number of different objects, and the names of those that failed last, at most 10. */
  objects: z.object({ count: z.number(), names: z.array(z.string()) }),
  count: z.number(),
  firstSeen: z.string(),
  lastSeen: z.string(),
  /** The ids of its dead letters that can be replayed. */
  deadLetters: z.array(z.string()),
  lastRun: z.object({ function: z.string(), id: z.string() }),
});
export type ErrorGroup = z.infer<typeof errorGroupSchema>;

export const errorDetailSchema = z.object({
  group: errorGroupSchema,
  /** Its newest occurrences, the last one first. */
  runs: z.array(
    z.object({
      function: z.string(),
      id: z.string(),
      /** ISO 8601. */
      at: z.string(),
      message: z.string(),
      /** `namespace/name`, or only the name. */
      object: z.string().optional(),
      /** The id of its dead letter, if that can be replayed. */
      deadLetter: z.string().optional(),
    }),
  ),
  /** Its occurrences over time: each count is of `stepMs` milliseconds, the first of those from `from` on. */
  plot: z.object({ from: z.string(), stepMs: z.number(), counts: z.array(z.number()) }),
  /** There are more failures than were looked at. */
  more: z.boolean(),
});
export type ErrorDetail = z.infer<typeof errorDetailSchema>;

export const errorsAnswerSchema = z.object({
  /** Last seen first. */
  groups: z.array(errorGroupSchema),
  /** There are more failures than were looked at. */
  more: z.boolean(),
  /** Describes which replicas are not part of the answer. */
  elsewhere: z.string().optional(),
});

/** The kind of data that changed, in an event of `/api/events`. */
export type Topic = "functions" | "runs" | "sources" | "dead-letters";

export const loginCodeSchema = z.object({ code: z.string(), expiresInSeconds: z.number() });
/** A login: a one-time code, or a token of the cluster or of the data folder. */
export const loginQuestionSchema = z.union([
  z.strictObject({ code: z.string().min(1).max(100) }),
  z.strictObject({ token: z.string().min(1).max(16_384) }),
]);
export const sessionQuestionSchema = z.strictObject({ function: z.string().max(253).optional() });
/** The caller who is logged in, and whether they may change a function, or all. */
export const sessionAnswerSchema = z.object({
  who: z.string(),
  mayUpdate: z.boolean(),
  /** The runtime is that of `watchfire dev`. */
  isDev: z.boolean().optional(),
  /** The missing right, and how to get it. Absent if they may. */
  why: z.string().optional(),
});
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>;
export const loginAnswerSchema = z.object({
  /** To be sent with each request, as `X-Watchfire-Proof`. */
  proof: z.string(),
});
