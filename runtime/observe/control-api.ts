import { type Context, Hono } from "hono";
import { z } from "zod";
import { nameSchema, namespaceSchema } from "./explanation.ts";
import type { UnderWay } from "./under-way.ts";

/** Describes where the other shards of the function are. Absent if the answer covers all shards. */
const elsewhere = z.string().optional();

/** A function's state after `pause` or `resume`. */
export const pauseAnswerSchema = z.object({
  /** Whether this command changed anything. */
  changed: z.boolean(),
  /** Describes what the function does now. */
  says: z.string(),
});
export type PauseAnswer = z.infer<typeof pauseAnswerSchema>;

/** Some of a function's log lines. */
export const logAnswerSchema = z.object({
  /** As in the log: JSON, oldest first. */
  lines: z.array(z.object({ number: z.number(), line: z.string() })),
  elsewhere,
});
export type LogAnswer = z.infer<typeof logAnswerSchema>;

/** One attempt that has ended. */
export const runRowSchema = z.object({
  function: z.string(),
  /** The event's id: `run` in the log, and `event.id` in the handler. */
  id: z.string(),
  trigger: z.string(),
  /** The event's type; `Reconcile` for a key in the history. */
  type: z.string(),
  kind: z.string(),
  /** `namespace/name`, or only the name for a cluster-scoped object. */
  object: z.string(),
  resourceVersion: z.string(),
  /** Counts from 1. */
  attempt: z.number(),
  /** `interrupted`: what it ran in has ended, because of another event or a stop. It runs again, uncounted. */
  outcome: z.enum(["ok", "failed", "permanent", "interrupted"]),
  /** From the event's arrival to the handler's start, in milliseconds. Absent if it is not known. */
  waitedMs: z.number().optional(),
  durationMs: z.number(),
  /** When it ended, as ISO 8601. */
  at: z.string(),
  /** An earlier delivery of the event may have run. */
  redelivered: z.boolean().optional(),
  /** Why the event is synthetic, as `event.reason` in the handler; empty without a reason. */
  synthetic: z.string().optional(),
  /** The id of its trace. Absent if it is not sampled. */
  trace: z.string().optional(),
  /** Number of calls that the handler made. Absent without calls. */
  calls: z.number().optional(),
  /** CPU time that it used, in milliseconds, and the heap of its isolate, in bytes. Absent if they are not known. */
  cpuMs: z.number().optional(),
  heapBytes: z.number().optional(),
  /** The error's name and message, if it failed. */
  error: z.string().optional(),
  /** A log line of the run is a warning or an error. Only the console looks for it. */
  warned: z.boolean().optional(),
});

/** Attempts that match, newest first. */
export const runsAnswerSchema = z.object({ runs: z.array(runRowSchema), elsewhere });
export type RunsAnswer = z.infer<typeof runsAnswerSchema>;
export type RunRow = z.infer<typeof runRowSchema>;

/** Which attempts an answer contains. */
export const runFiltersSchema = z.strictObject({
  outcome: z.enum(["ok", "failed", "permanent", "interrupted"]).optional(),
  /** Part of the kind, a space and `namespace/name`, in upper or lower case. */
  object: z.string().max(400).optional(),
  trigger: z.string().max(63).optional(),
  /** Attempts that ended at this time or later, as ISO 8601. */
  since: z.iso.datetime({ offset: true }).optional(),
  /** Attempts that ended before this time. */
  before: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(200),
});
export type RunFilters = z.infer<typeof runFiltersSchema>;

/** Request to redeliver events, or to report the progress of a redelivery job. */
export const redeliverQuestionSchema = z.union([
  z.strictObject({
    object: z.strictObject({ namespace: namespaceSchema, name: nameSchema }),
    trigger: z.string().max(63).optional(),
  }),
  z.strictObject({ all: z.literal(true), trigger: z.string().max(63).optional() }),
  z.strictObject({ run: z.string().min(1).max(400) }),
  z.strictObject({ schedule: z.literal(true), trigger: z.string().max(63).optional() }),
  z.strictObject({ job: z.string().min(1).max(20) }),
]);
export type RedeliverQuestion = z.infer<typeof redeliverQuestionSchema>;

/** Result of a redelivery. */
export const redeliveriesSchema = z.object({
  /** Number of events appended to their queues. */
  queued: z.number(),
  /** Number of objects that were not redelivered, by reason. */
  skipped: z.array(z.object({ why: z.enum(["waits", "news", "filtered", "full"]), count: z.number() })),
  /** Set if the job is still running: the id to ask for next. */
  job: z.string().optional(),
  elsewhere,
});
export type Redeliveries = z.infer<typeof redeliveriesSchema>;

/**
 * Request to start a recording, of `count` deliveries or without an end, or to get the next part of one and wait up to `wait`
 * seconds for it.
 */
export const recordQuestionSchema = z.union([
  z.strictObject({ recording: z.string().min(1).max(20), wait: z.number().min(0).max(10) }),
  z.strictObject({ count: z.int().min(1).max(1000).optional() }),
]);
export type RecordQuestion = z.infer<typeof recordQuestionSchema>;

/** The deliveries recorded since the last answer. */
export const recordAnswerSchema = z.object({
  taken: z.array(
    z.object({
      /** `added`, `modified`, `deleted`, `scheduled`, `run` or `batch`. */
      what: z.string(),
      /** The object's name, or the trigger's. */
      object: z.string(),
      /** The fixture, with secrets removed. */
      fixture: z.record(z.string(), z.unknown()),
    }),
  ),
  /** Number of deliveries that were too large. */
  left: z.number(),
  /** Set if the recording continues: the id to ask for next. */
  recording: z.string().optional(),
  elsewhere,
});
export type RecordAnswer = z.infer<typeof recordAnswerSchema>;

/** Request for log lines after a number, and since a time. If there are no such lines, waits up to `wait` seconds. */
export const logQuestionSchema = z.object({
  after: z.coerce.number().int().min(0).default(0),
  since: z.iso.datetime({ offset: true }).optional(),
  wait: z.coerce.number().min(0).max(10).default(0),
});

/**
 * Operations on one function, by its name. Each rejects with WF_RUNTIME_NO_FUNCTION for an unknown name, and with
 * WF_LEASE_STANDBY if another replica runs the function. `isPart`: the answer is joined with those of the other shards, so it does
 * not say where these are. Default false.
 */
export interface ControlApi {
  pause(name: string, isPart?: boolean): Promise<PauseAnswer>;
  /** Rejects with WF_RUNTIME_PAUSED_BY_MANIFEST or WF_RUNTIME_PAUSED_BY_SET if its manifest or its set pauses it. */
  resume(name: string, isPart?: boolean): Promise<PauseAnswer>;
  /**
   * Returns the completed attempts that match, of one function or of all functions here. Interrupted attempts are not included.
   * Default: the last 200. Without a history there are no more than 200 of each function.
   */
  runs(name: string | undefined, filters?: RunFilters): Promise<RunsAnswer>;
  /**
   * Returns log lines after a number, of one function or of all functions here, at most 5,000 of the history. Without any, waits for
   * one, at most `waitMs`. `since`: in epoch milliseconds; default 0.
   */
  logs(name: string | undefined, after: number, waitMs: number, since?: number): Promise<LogAnswer>;
  /** Redelivers events to its handler. Rejects with WF_RUNTIME_NOT_REDELIVERED or WF_RUNTIME_NO_RUN if it cannot. */
  redeliver(name: string, question: RedeliverQuestion, isPart?: boolean): Promise<Redeliveries>;
  /** Records what its handler receives from now on, as fixtures without secrets. Rejects with WF_RUNTIME_NOT_RECORDED. */
  record(name: string, question: RecordQuestion): Promise<RecordAnswer>;
}

/** Variables that a gate before the routes may set. */
export interface ControlEnv {
  Variables: {
    /** Removes the values of Secrets from what a caller is shown who may not see them. */
    redact?: (data: unknown) => unknown;
    /** The answer becomes a part of a fleet's. */
    isPart?: boolean;
  };
}

/** The routes below `/functions`. */
export function functionRoutes(api: ControlApi, underWay: UnderWay): Hono<ControlEnv> {
  const app = new Hono<ControlEnv>();
  const nameOf = (c: Context) => c.req.param("name") ?? "";
  const isPart = (c: Context<ControlEnv>) => c.get("isPart") === true;
  app.post("/:name/pause", async (c) =>
    c.json(await underWay.answer("the pause", () => api.pause(nameOf(c), isPart(c)))),
  );
  app.post("/:name/resume", async (c) =>
    c.json(await underWay.answer("the end of the pause", () => api.resume(nameOf(c), isPart(c)))),
  );
  for (const path of ["/runs", "/:name/runs"]) {
    app.get(path, async (c) => {
      const asked = runFiltersSchema.safeParse(c.req.query());
      if (!asked.success) return c.json({ error: z.prettifyError(asked.error) }, 400);
      return c.json(await api.runs(c.req.param("name"), asked.data));
    });
  }
  for (const path of ["/logs", "/:name/logs"]) {
    app.get(path, async (c) => {
      const asked = logQuestionSchema.safeParse(c.req.query());
      if (!asked.success)
        return c.json({ error: "the query is after=NUMBER&since=TIME&wait=SECONDS, 10 at most" }, 400);
      const { after, wait, since } = asked.data;
      const from = since === undefined ? undefined : Date.parse(since);
      return c.json(await api.logs(c.req.param("name"), after, wait * 1000, from));
    });
  }
  app.post("/:name/redeliver", async (c) => {
    const asked = redeliverQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: "the body names an object, all, a run or a job" }, 400);
    const answer = await underWay.answer("the redelivery", () => api.redeliver(nameOf(c), asked.data, isPart(c)));
    if (answer.job !== undefined) underWay.assertSaves("the redelivery");
    return c.json(answer);
  });
  app.post("/:name/record", async (c) => {
    const asked = recordQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: "the body has a count, or a recording and seconds to wait" }, 400);
    return c.json(await api.record(nameOf(c), asked.data));
  });
  return app;
}
