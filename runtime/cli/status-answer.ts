import type { FleetReport } from "../control/fleet-report.ts";
import { statusAnswerSchema } from "../control/status-answer.ts";
import type { RuntimeClient } from "./runtime-client.ts";

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
