import { type Context, Hono } from "hono";
import { z } from "zod";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import type { DeadLetter, DeadLetterSummary } from "../journal/batch.ts";
import type { DeadLetterPage } from "../journal/checkpoint.ts";
import type { WaitingReplay } from "../journal/dead-letters.ts";
import { type ControlApi, type ControlEnv, functionRoutes } from "./control-api.ts";
import { type DeadLetterDetail, deadLetterId, describeDeadLetter, describeSummary } from "./dead-letter.ts";
import { type ExplainQuestion, type Explanation, nameSchema, namespaceSchema } from "./explanation.ts";
import { describeFailure } from "./failure.ts";
import type { SupportReport } from "./support-report.ts";
import type { UnderWay } from "./under-way.ts";

/** The dead letters, as used by the endpoints. Unknown ids are refused with WF_CHECKPOINT_NO_DEAD_LETTER. */
export interface DeadLetterService {
  /** `isPart`: the page may begin after a dead letter of another replica, whose answers are joined with these. Default false. */
  list(
    page: Pick<DeadLetterPage, "after" | "function"> & { readonly isPart?: boolean },
  ): Promise<readonly DeadLetterSummary[]>;
  show(id: string): Promise<DeadLetter>;
  replay(ids: readonly string[]): Promise<readonly WaitingReplay[]>;
  drop(ids: readonly string[]): Promise<void>;
}

/** One call replays or drops at most this many. The caller splits a longer list. */
export const idsSchema = z.strictObject({ ids: z.array(z.string().max(200)).min(1).max(1000) });

export const objectQuestionSchema = z.object({ namespace: namespaceSchema, name: nameSchema });

/** Some of the dead letters: those after one, and those of one function. */
export const deadLettersQuestionSchema = z.object({
  after: z.string().regex(deadLetterId).optional(),
  function: z.string().optional(),
});

/** The parts of the runtime that these routes use. */
export interface ControlParts {
  /** @throws WatchfireError WF_LEASE_STANDBY if another replica has them */
  deadLetters(): DeadLetterService;
  /**
   * Explains why a function's handler did not run for an object. Rejects with WF_RUNTIME_NO_FUNCTION or WF_LEASE_STANDBY. `isPart`: as
   * for `ControlApi`.
   */
  explain(question: ExplainQuestion, isPart?: boolean): Promise<Explanation>;
  /** Operations on one function. */
  readonly functions: ControlApi;
  /** Returns the state for somebody who helps, without secrets. */
  support(): Promise<SupportReport>;
}

/** Creates the routes of the commands, without guards: explanations, operations on functions, and dead letters. */
export function controlRoutes(parts: ControlParts, underWay: UnderWay): Hono<ControlEnv> {
  const app = new Hono<ControlEnv>();
  app.get("/explain/:function", async (c) => {
    const asked = objectQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "the query is namespace=NAMESPACE&name=NAME, of an object" }, 400);
    const isPart = c.get("isPart") === true;
    return c.json(await parts.explain({ function: c.req.param("function"), ...asked.data }, isPart));
  });
  app.route("/functions", functionRoutes(parts.functions, underWay));
  app.get("/support", async (c) => c.json(await parts.support()));
  const letters = () => parts.deadLetters();
  app.get("/dead-letters", async (c) => {
    const asked = deadLettersQuestionSchema.safeParse(c.req.query());
    if (!asked.success) return c.json({ error: "after takes a dead letter's id" }, 400);
    const { after, function: name } = asked.data;
    return c.json(
      (await letters().list({ after, function: name, isPart: c.get("isPart") === true })).map(describeSummary),
    );
  });
  app.get("/dead-letters/:id", async (c) => {
    const letter = describeDeadLetter(await letters().show(c.req.param("id")));
    return c.json((c.get("redact")?.(letter) as DeadLetterDetail | undefined) ?? letter);
  });
  for (const action of ["replay", "drop"] as const) {
    app.post(`/dead-letters/${action}`, async (c) => {
      const asked = idsSchema.safeParse(await c.req.json().catch(() => undefined));
      if (!asked.success) return c.json({ error: 'the body is {"ids": ["…"]}' }, 400);
      const { ids } = asked.data;
      const waiting = await underWay.answer(
        `the ${action} of dead letters`,
        async () => (await letters()[action](ids)) ?? [],
      );
      return c.json(action === "replay" ? { waiting } : {});
    });
  }
  return app;
}

/** HTTP status by error code. All other errors are answered with 500. */
const statuses: { readonly [code in ErrorCode]?: 401 | 403 | 404 | 409 | 503 } = {
  WF_OBSERVE_TOKEN: 401,
  WF_CONTROL_TOKEN: 401,
  WF_CONTROL_FORBIDDEN: 403,
  WF_CONTROL_REVIEW: 503,
  WF_CHECKPOINT_NO_DEAD_LETTER: 404,
  WF_CHECKPOINT_LETTER_HOMELESS: 409,
  WF_CHECKPOINT_LETTER_EMPTY: 409,
  WF_LEASE_STANDBY: 503,
  WF_RUNTIME_PENDING: 503,
  WF_RUNTIME_BUSY: 503,
  WF_RUNTIME_NO_FUNCTION: 404,
  WF_RUNTIME_PAUSED_BY_MANIFEST: 409,
  WF_RUNTIME_PAUSED_BY_SET: 409,
  WF_RUNTIME_NO_RUN: 404,
  WF_RUNTIME_NO_ERROR_GROUP: 404,
  WF_CLI_FIXTURE: 409,
  WF_RUNTIME_NOT_REDELIVERED: 409,
  WF_RUNTIME_NOT_RECORDED: 409,
};

/** Answers a request that failed. */
export function answerFailure(error: Error, c: Context): Response {
  const status = error instanceof WatchfireError ? statuses[error.code] : undefined;
  return c.json(describeFailure(error), status ?? 500);
}
