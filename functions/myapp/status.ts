import { ConflictError, type Kube, NotFoundError, type Ref } from "@watchfire/sdk";
import type { Condition, MyApp, MyAppStatus } from "./myapp.ts";

/** What the controller found out; the rest of a condition follows from it. */
export type Finding = Pick<Condition, "type" | "status" | "reason" | "message">;

/** The status after a finding about `generation`. Conditions of other types stay; the transition time moves with `status` alone. */
export function nextStatus(
  current: MyAppStatus | undefined,
  generation: number | undefined,
  finding: Finding,
  now: Date,
): MyAppStatus {
  const conditions = current?.conditions ?? [];
  const before = conditions.find((condition) => condition.type === finding.type);
  const lastTransitionTime =
    before?.status === finding.status ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, "Z");
  const condition: Condition = { ...finding, observedGeneration: generation, lastTransitionTime };
  return {
    ...current,
    observedGeneration: generation,
    conditions: before ? conditions.map((other) => (other === before ? condition : other)) : [...conditions, condition],
  };
}

/** Whether the status says it already, so that nothing need be written. */
function says(status: MyAppStatus | undefined, generation: number | undefined, finding: Finding): boolean {
  const condition = status?.conditions?.find((other) => other.type === finding.type);
  return (
    status?.observedGeneration === generation &&
    condition?.observedGeneration === generation &&
    condition?.status === finding.status &&
    condition.reason === finding.reason &&
    condition.message === finding.message
  );
}

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
    const app = await find(kube, ref);
    if (!app) return "gone";
    if (says(app.status, generation, finding)) return "written";
    const status = nextStatus(app.status, generation, finding, new Date());
    try {
      const stored = await kube.updateStatus({ ...app, status });
      return stored.status?.conditions ? "written" : "dropped";
    } catch (error) {
      if (error instanceof NotFoundError) return (await find(kube, ref)) ? "unserved" : "gone";
      if (!(error instanceof ConflictError) || attempt === attempts) throw error;
    }
  }
}

/** The MyApp as it is now; undefined when there is none. */
export async function find(kube: Kube, ref: Ref): Promise<MyApp | undefined> {
  try {
    return await kube.get<MyApp>(ref);
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
