import { type Context, Hono } from "hono";
import { z } from "zod";

/** How a function stands after `pause` or `resume`. */
export const pauseAnswerSchema = z.object({
  /** Whether this command changed anything. */
  changed: z.boolean(),
  /** In words, what the function does now. */
  says: z.string(),
});
export type PauseAnswer = z.infer<typeof pauseAnswerSchema>;

/**
 * What may be asked of one function, by its name. Each rejects with WF_RUNTIME_NO_FUNCTION for a name that the runtime
 * does not have, and with WF_LEASE_STANDBY where another replica has it.
 */
export interface FunctionDesk {
  pause(name: string): Promise<PauseAnswer>;
  /** Rejects with WF_RUNTIME_PAUSED_BY_MANIFEST where its manifest pauses it. */
  resume(name: string): Promise<PauseAnswer>;
}

/** What is below `/functions`. */
export function functionRoutes(desk: FunctionDesk): Hono {
  const app = new Hono();
  const nameOf = (c: Context) => c.req.param("name") ?? "";
  app.post("/:name/pause", async (c) => c.json(await desk.pause(nameOf(c))));
  app.post("/:name/resume", async (c) => c.json(await desk.resume(nameOf(c))));
  return app;
}
