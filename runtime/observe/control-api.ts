import { type Context, Hono } from "hono";
import { z } from "zod";
import { nameSchema, namespaceSchema } from "./explanation.ts";
import type { UnderWay } from "./under-way.ts";

/** In words, where the shards of the function are that the answer is not of; left out where it is of all. */
const elsewhere = z.string().optional();

/** How a function stands after `pause` or `resume`. */
export const pauseAnswerSchema = z.object({
  /** Whether this command changed anything. */
  changed: z.boolean(),
  /** In words, what the function does now. */
  says: z.string(),
});
export type PauseAnswer = z.infer<typeof pauseAnswerSchema>;

/** Some of a function's log lines. */
export const logAnswerSchema = z.object({
  /** As the log has them: JSON, oldest first. */
  lines: z.array(z.object({ number: z.number(), line: z.string() })),
  elsewhere,
});
type LogAnswer = z.infer<typeof logAnswerSchema>;

/** A function's last attempts, newest first. */
export const runsAnswerSchema = z.object({
  runs: z.array(
    z.object({
      /** The event's id: the log's `run`, and what the handler has as `event.id`. */
      id: z.string(),
      trigger: z.string(),
      type: z.string(),
      kind: z.string(),
      /** `namespace/name`, or the name of an object without a namespace. */
      object: z.string(),
      resourceVersion: z.string(),
      /** From 1. */
      attempt: z.number(),
      outcome: z.enum(["ok", "failed", "permanent"]),
      durationMs: z.number(),
      /** ISO 8601: when it ended. */
      at: z.string(),
      /** The error's name and message, where it failed. */
      error: z.string().optional(),
    }),
  ),
  elsewhere,
});
export type RunsAnswer = z.infer<typeof runsAnswerSchema>;

/** What is to be told again; of an errand, how far it is. */
const redeliverQuestionSchema = z.union([
  z.strictObject({
    object: z.strictObject({ namespace: namespaceSchema, name: nameSchema }),
    trigger: z.string().max(63).optional(),
  }),
  z.strictObject({ all: z.literal(true), trigger: z.string().max(63).optional() }),
  z.strictObject({ run: z.string().min(1).max(400) }),
  z.strictObject({ schedule: z.literal(true), trigger: z.string().max(63).optional() }),
  z.strictObject({ errand: z.string().min(1).max(20) }),
]);
export type RedeliverQuestion = z.infer<typeof redeliverQuestionSchema>;

/** What came of a redelivery. */
export const redeliveriesSchema = z.object({
  /** Events that were put at the end of their lanes. */
  told: z.number(),
  /** Objects that were left, by why. */
  left: z.array(z.object({ why: z.enum(["waits", "news", "filtered", "full"]), count: z.number() })),
  /** It goes on: what to ask for next. */
  errand: z.string().optional(),
  elsewhere,
});
export type Redeliveries = z.infer<typeof redeliveriesSchema>;

/** A recording that begins, of so many or without end; or one that goes on, and how many seconds to wait for the next. */
const recordQuestionSchema = z.union([
  z.strictObject({ recording: z.string().min(1).max(20), wait: z.number().min(0).max(10) }),
  z.strictObject({ count: z.int().min(1).max(1000).optional() }),
]);
export type RecordQuestion = z.infer<typeof recordQuestionSchema>;

/** What a function was given since the last answer. */
export const recordAnswerSchema = z.object({
  taken: z.array(
    z.object({
      /** `added`, `modified`, `deleted`, `scheduled`, `run` or `batch`. */
      what: z.string(),
      /** The object's name, or the trigger's. */
      object: z.string(),
      /** Without secrets. */
      fixture: z.record(z.string(), z.unknown()),
    }),
  ),
  /** How many were too large. */
  left: z.number(),
  /** It goes on: what to ask for next. */
  recording: z.string().optional(),
  elsewhere,
});
export type RecordAnswer = z.infer<typeof recordAnswerSchema>;

/** Which log lines are wanted: those after a number, for which it waits so many seconds where there is none. */
const logQuestionSchema = z.object({
  after: z.coerce.number().int().min(0).default(0),
  wait: z.coerce.number().min(0).max(10).default(0),
});

/**
 * What may be asked of one function, by its name. Each rejects with WF_RUNTIME_NO_FUNCTION for a name that the runtime
 * does not have, and with WF_LEASE_STANDBY where another replica has it.
 */
export interface ControlApi {
  pause(name: string): Promise<PauseAnswer>;
  /** Rejects with WF_RUNTIME_PAUSED_BY_MANIFEST where its manifest pauses it. */
  resume(name: string): Promise<PauseAnswer>;
  /** Its last attempts that ended by themselves, 200 at most. */
  runs(name: string): Promise<RunsAnswer>;
  /** Its log lines after a number, or those of all functions here. Waits for one, `waitMs` at most, where there is none. */
  logs(name: string | undefined, after: number, waitMs: number): Promise<LogAnswer>;
  /** Tells its handler again. Rejects with WF_RUNTIME_NOT_REDELIVERED, or WF_RUNTIME_NO_RUN, where it cannot. */
  redeliver(name: string, question: RedeliverQuestion): Promise<Redeliveries>;
  /** What its handler is given from now on, as fixtures without secrets. Rejects with WF_RUNTIME_NOT_RECORDED. */
  record(name: string, question: RecordQuestion): Promise<RecordAnswer>;
}

/** What is below `/functions`. */
export function functionRoutes(desk: ControlApi, underWay: UnderWay): Hono {
  const app = new Hono();
  const nameOf = (c: Context) => c.req.param("name") ?? "";
  app.post("/:name/pause", async (c) => c.json(await underWay.answer("the pause", () => desk.pause(nameOf(c)))));
  app.post("/:name/resume", async (c) =>
    c.json(await underWay.answer("the end of the pause", () => desk.resume(nameOf(c)))),
  );
  app.get("/:name/runs", async (c) => c.json(await desk.runs(nameOf(c))));
  for (const path of ["/logs", "/:name/logs"]) {
    app.get(path, async (c) => {
      const asked = logQuestionSchema.safeParse(c.req.query());
      if (!asked.success) return c.json({ error: "the query is after=NUMBER&wait=SECONDS, 10 at most" }, 400);
      return c.json(await desk.logs(c.req.param("name"), asked.data.after, asked.data.wait * 1000));
    });
  }
  app.post("/:name/redeliver", async (c) => {
    const asked = redeliverQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: "the body names an object, all, a run or an errand" }, 400);
    const answer = await underWay.answer("the redelivery", () => desk.redeliver(nameOf(c), asked.data));
    if (answer.errand !== undefined) underWay.assertSaves("the redelivery");
    return c.json(answer);
  });
  app.post("/:name/record", async (c) => {
    const asked = recordQuestionSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return c.json({ error: "the body has a count, or a recording and seconds to wait" }, 400);
    return c.json(await desk.record(nameOf(c), asked.data));
  });
  return app;
}
