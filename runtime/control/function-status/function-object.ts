import type { Origin } from "../../catalog/function-source.ts";
import type { FunctionReport } from "./function-report.ts";
import { reasonOfCode, reasonOfState, type StatusReason } from "./reason.ts";

/** A condition as Kubernetes has them (metav1.Condition). */
export interface Condition {
  readonly type: "Ready" | "Built" | "Permitted" | "Watching";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** Where a function comes from; its code is not in it. */
export interface FunctionSpec {
  readonly runtime: string;
  readonly source:
    | { readonly folder: { readonly manifest: string }; readonly configMap: null }
    | { readonly configMap: { readonly name: string; readonly sha256: string }; readonly folder: null };
}

/** As it is sent in a merge patch: null takes away what was there. */
export interface FunctionObjectStatus {
  readonly lag: string;
  readonly lastEvent: string | null;
  readonly failures: number;
  readonly deadLetters: number;
  readonly queued: number;
  readonly reason: string | null;
  readonly message: string | null;
  readonly triggers: FunctionReport["triggers"];
  readonly conditions: readonly Condition[];
}

/** Above a page nobody reads on, and the definition allows 32 KiB. */
export const messageLimit = 2048;

/** Reasons for which nothing of the function's newest version can be loaded. */
const unbuilt: ReadonlySet<StatusReason> = new Set([
  "BuildFailed",
  "LoadFailed",
  "ManifestRefused",
  "DeploymentDamaged",
]);

export function specOf(account: string, origin: Origin): FunctionSpec {
  const source =
    origin.type === "folder"
      ? { folder: { manifest: origin.manifest }, configMap: null }
      : { configMap: { name: origin.name, sha256: origin.sha256 }, folder: null };
  return { runtime: account, source };
}

/**
 * @param before the conditions as they were: one whose status stays keeps its time
 * @param now milliseconds since the epoch
 */
export function statusOf(report: FunctionReport, before: readonly Condition[], now: number): FunctionObjectStatus {
  const message = report.message?.slice(0, messageLimit);
  return {
    lag: `${Math.floor(report.lagSeconds)}s`,
    lastEvent: report.lastEvent ?? null,
    failures: report.failures,
    deadLetters: report.deadLetters,
    queued: report.queued + report.inFlight + report.spilled,
    reason: report.reason ?? null,
    message: message ?? null,
    triggers: report.triggers.map(({ message: why, ...rest }) => ({
      ...rest,
      ...(why !== undefined && { message: why.slice(0, messageLimit) }),
    })),
    conditions: conditionsOf(report, message ?? "").map((condition) => {
      const old = before.find(({ type }) => type === condition.type);
      const since = old?.status === condition.status ? old.lastTransitionTime : timeOf(now);
      return { ...condition, lastTransitionTime: since };
    }),
  };
}

/** Whole seconds, as metav1.Time has them. */
const timeOf = (now: number): string => new Date(now).toISOString().replace(/\.\d+Z$/, "Z");

function conditionsOf(report: FunctionReport, message: string): Omit<Condition, "lastTransitionTime">[] {
  const { ready, reason, code } = report;
  // Of a change that is refused: what is wrong with it.
  const fault = reason === "ChangeRefused" && code ? reasonOfCode(code) : reason;
  const because = (type: Condition["type"], why: string) => ({ type, status: "False" as const, reason: why, message });
  const holds = (type: Condition["type"], why: string) =>
    reason === "Starting"
      ? { type, status: "Unknown" as const, reason, message }
      : { type, status: "True" as const, reason: why, message: "" };
  const forbidden = report.triggers.find(({ state }) => state === "forbidden");
  return [
    ready ? holds("Ready", "Running") : because("Ready", reason ?? "CatchingUp"),
    fault !== undefined && unbuilt.has(fault) ? because("Built", fault) : holds("Built", "Built"),
    fault === "Forbidden" || forbidden
      ? { ...because("Permitted", "Forbidden"), message: forbidden?.message?.slice(0, messageLimit) ?? message }
      : holds("Permitted", "Granted"),
    watching(report),
  ];
}

/** The worst of its triggers' states. */
function watching({ triggers }: FunctionReport): Omit<Condition, "lastTransitionTime"> {
  for (const state of ["missing", "forbidden", "degraded", "backoff"]) {
    const bad = triggers.find((trigger) => trigger.state === state);
    const reason = bad && reasonOfState(state);
    if (!reason) continue;
    const message = (bad.message ?? `the trigger ${bad.name} is in state ${state}`).slice(0, messageLimit);
    return { type: "Watching", status: "False", reason, message };
  }
  const all = triggers.length > 0 && triggers.every(({ state }) => state === "watching" || state === "scheduled");
  return all
    ? { type: "Watching", status: "True", reason: "Watching", message: "" }
    : { type: "Watching", status: "Unknown", reason: "NotYet", message: "" };
}
