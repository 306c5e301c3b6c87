import {
  type Condition,
  ConflictError,
  getOrUndefined,
  type Kube,
  NotFoundError,
  type Ref,
  setCondition,
} from "@watchfire/sdk";
import type { MyApp } from "./myapp.ts";

/** What the controller found out; the rest of a condition follows from it. */
export type Finding = Pick<Condition, "type" | "status" | "reason" | "message">;

const attempts = 5;

/**
 * Writes a finding about `generation` into the status, again on a conflict.
 * `unserved`: the custom resource has no `/status`; `dropped`: its schema has no status; `gone`: the MyApp was deleted.
 */
export async function writeStatus(
  kube: Kube,
  ref: Ref,
  generation: number | undefined,
  finding: Finding,
): Promise<"written" | "unserved" | "dropped" | "gone"> {
  for (let attempt = 1; ; attempt++) {
    const app = await getOrUndefined<MyApp>(kube, ref);
    if (!app) return "gone";
    const conditions = setCondition(app.status?.conditions, { ...finding, observedGeneration: generation });
    if (conditions === app.status?.conditions && app.status.observedGeneration === generation) return "written";
    const status = { ...app.status, observedGeneration: generation, conditions };
    try {
      const stored = await kube.updateStatus<MyApp>({ ...app, status });
      return stored.status?.conditions ? "written" : "dropped";
    } catch (error) {
      if (error instanceof NotFoundError) return (await getOrUndefined(kube, ref)) ? "unserved" : "gone";
      if (!(error instanceof ConflictError) || attempt === attempts) throw error;
    }
  }
}
