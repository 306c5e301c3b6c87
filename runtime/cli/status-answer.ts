import { z } from "zod";
import { type FleetReport, fleetReportSchema } from "../control/fleet-report.ts";
import { functionReportSchema } from "../control/function-status/function-report.ts";
import type { RuntimeClient } from "./runtime-client.ts";

/** Why something does not work: a one-word reason and a message. */
const troubleSchema = z.object({ reason: z.string(), message: z.string() }).partial().optional();

/** The part of `/status` that the commands show. Runtimes of other versions may report less or more. */
export const statusAnswerSchema = z.looseObject({
  role: z.string().default("active"),
  lease: z.object({ holder: z.string() }).optional(),
  checkpoint: troubleSchema,
  deployment: troubleSchema,
  sandbox: troubleSchema,
  functions: z
    .array(
      // A function whose manifest cannot be read may have no name.
      functionReportSchema
        .omit({ code: true, reads: true, filtered: true })
        .partial()
        .extend({
          reason: z.string().optional(),
          triggers: z.array(z.looseObject({ name: z.string(), kind: z.string() })).default([]),
        })
        .loose(),
    )
    .default([]),
  sources: z
    .array(
      z.looseObject({
        apiVersion: z.string(),
        kind: z.string(),
        namespace: z.string().optional(),
        labelSelector: z.string().optional(),
        fieldSelector: z.string().optional(),
        state: z.string(),
        message: z.string().optional(),
        resourceVersion: z.string().optional(),
        lastByteAgeMs: z.number().optional(),
        subscribers: z.number().optional(),
      }),
    )
    .default([]),
  fleet: fleetReportSchema.optional(),
});
export type StatusAnswer = z.infer<typeof statusAnswerSchema>;

/** Returns the names of all functions of a runtime or its fleet. */
export async function functionNames(runtime: RuntimeClient): Promise<string[]> {
  const { functions, fleet } = await runtime.ask(statusAnswerSchema, "status");
  const elsewhere = fleet?.slots.flatMap((slot) => slot.functions) ?? [];
  return [...new Set([...functions.flatMap(({ name }) => name ?? []), ...elsewhere])];
}

/** Returns the fleet's report. `undefined` if the runtime is not a replica of a fleet. */
export async function fleetOf(runtime: RuntimeClient): Promise<FleetReport | undefined> {
  return (await runtime.ask(statusAnswerSchema, "status")).fleet;
}
