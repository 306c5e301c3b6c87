import { z } from "zod";
import { type FleetReport, fleetReportSchema } from "../control/fleet-report.ts";
import { functionReportSchema } from "../control/function-status/function-report.ts";
import type { RuntimeClient } from "./runtime-client.ts";

/** What of `/status` the commands show. */
const statusSchema = z.object({
  /** A function whose manifest cannot be read may have no name. */
  functions: z.array(functionReportSchema.pick({ name: true }).partial()).default([]),
  fleet: fleetReportSchema.optional(),
});

/** The names of all functions that a runtime or its fleet has. */
export async function functionNames(runtime: RuntimeClient): Promise<string[]> {
  const { functions, fleet } = await runtime.ask(statusSchema, "status");
  const elsewhere = fleet?.slots.flatMap((slot) => slot.functions) ?? [];
  return [...new Set([...functions.flatMap(({ name }) => name ?? []), ...elsewhere])];
}

/** Undefined where the runtime is no replica of one. */
export async function fleetOf(runtime: RuntimeClient): Promise<FleetReport | undefined> {
  return (await runtime.ask(statusSchema, "status")).fleet;
}
