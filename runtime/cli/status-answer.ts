import type { FleetReport } from "../control/fleet-report.ts";
import { statusAnswerSchema } from "../control/status-answer.ts";
import type { RuntimeClient } from "./runtime-client.ts";

/** The names of all functions that a runtime or its fleet has. */
export async function functionNames(runtime: RuntimeClient): Promise<string[]> {
  const { functions, fleet } = await runtime.ask(statusAnswerSchema, "status");
  const elsewhere = fleet?.slots.flatMap((slot) => slot.functions) ?? [];
  return [...new Set([...functions.flatMap(({ name }) => name ?? []), ...elsewhere])];
}

/** Undefined where the runtime is no replica of one. */
export async function fleetOf(runtime: RuntimeClient): Promise<FleetReport | undefined> {
  return (await runtime.ask(statusAnswerSchema, "status")).fleet;
}
