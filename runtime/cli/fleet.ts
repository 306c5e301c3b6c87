import { z } from "zod";
import type { RuntimeClient } from "./runtime-client.ts";

/** What of `/status` the commands show. */
const statusSchema = z.object({
  /** A function whose manifest cannot be read may have no name. */
  functions: z.array(z.object({ name: z.string().optional() })).default([]),
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

/** The names of all functions that a runtime or its fleet has. */
export async function functionNames(runtime: RuntimeClient): Promise<string[]> {
  const { functions, fleet } = await runtime.ask(statusSchema, "status");
  const elsewhere = fleet?.slots.flatMap((slot) => slot.functions) ?? [];
  return [...new Set([...functions.flatMap(({ name }) => name ?? []), ...elsewhere])];
}

/** Undefined where the runtime is no replica of one. */
export async function fleetOf(runtime: RuntimeClient): Promise<Fleet | undefined> {
  return (await runtime.ask(statusSchema, "status")).fleet;
}
