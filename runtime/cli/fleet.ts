import { z } from "zod";
import type { RuntimeClient } from "./runtime-client.ts";

/** What of `/status` the commands show. */
const statusSchema = z.object({
  fleet: z
    .object({
      replica: z.string(),
      replicas: z.number(),
      obstacle: z.string().optional(),
      slots: z.array(
        z.object({
          slot: z.number(),
          owner: z.string(),
          state: z.string(),
          reason: z.string().optional(),
          functions: z.array(z.string()),
          oldestEventSeconds: z.number().optional(),
        }),
      ),
    })
    .optional(),
});

/** A fleet as one of its replicas sees it. */
export type Fleet = NonNullable<z.infer<typeof statusSchema>["fleet"]>;

/** Undefined where the runtime is no replica of one. */
export async function fleetOf(runtime: RuntimeClient): Promise<Fleet | undefined> {
  return (await runtime.ask(statusSchema, "status")).fleet;
}
