import type { Origin } from "../deployed/function-source.ts";
import type { FunctionReport } from "../status.ts";

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
const messageLimit = 2048;

/** What a reason of /status is called here; in CamelCase, as the conditions of other kinds. */
const reasons: readonly (readonly [RegExp, string])[] = [
  [/^missing$/, "KindMissing"],
  [/^forbidden$|^WF_KUBE_FORBIDDEN$/, "Forbidden"],
  [/^backoff$/, "Unreachable"],
  [/^degraded$/, "Degraded"],
  [/^WF_BUNDLE_|^WF_SANDBOX_LOAD|^LoadFailed$/, "BuildFailed"],
  [/^WF_MANIFEST_|^WF_FILTER_/, "ManifestRefused"],
  [/^WF_DEPLOYED_/, "DeploymentDamaged"],
  [/^WF_ACCESS_ENV$/, "EnvironmentMissing"],
];

const reasonOf = (reason: string): string => reasons.find(([pattern]) => pattern.test(reason))?.[1] ?? reason;

/** Reasons for which nothing of the function's newest version can be loaded. */
const unbuilt: ReadonlySet<string> = new Set(["BuildFailed", "ManifestRefused", "DeploymentDamaged"]);

/** Reasons for which it takes no events although its sources are read. */
const halted: ReadonlySet<string> = new Set(["BuildFailed", "Quarantined", "Forbidden"]);

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
    reason: report.reason === undefined ? null : reasonOf(report.reason),
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
  const reason = report.reason === undefined ? undefined : reasonOf(report.reason);
  const starting = reason === "Starting";
  const because = (type: Condition["type"], why: string) => ({ type, status: "False" as const, reason: why, message });
  const holds = (type: Condition["type"], why: string) =>
    starting
      ? { type, status: "Unknown" as const, reason: "Starting", message }
      : { type, status: "True" as const, reason: why, message: "" };
  const ready = report.ready && !(reason !== undefined && halted.has(reason) && !runsOn(report));
  const forbidden = report.triggers.find(({ state }) => state === "forbidden");
  return [
    ready ? holds("Ready", "Running") : because("Ready", reason ?? "CatchingUp"),
    reason !== undefined && unbuilt.has(reason) ? because("Built", reason) : holds("Built", "Built"),
    reason === "Forbidden" || forbidden
      ? { ...because("Permitted", "Forbidden"), message: forbidden?.message?.slice(0, messageLimit) ?? message }
      : holds("Permitted", "Granted"),
    watching(report),
  ];
}

/** A refused change leaves the version before running: /status then has a code and is ready all the same. */
const runsOn = ({ ready, reason = "" }: FunctionReport): boolean => ready && reason.startsWith("WF_");

/** The worst of its triggers' states. */
function watching({ triggers }: FunctionReport): Omit<Condition, "lastTransitionTime"> {
  for (const state of ["missing", "forbidden", "degraded", "backoff"]) {
    const bad = triggers.find((trigger) => trigger.state === state);
    if (!bad) continue;
    const message = (bad.message ?? `the trigger ${bad.name} is in state ${state}`).slice(0, messageLimit);
    return { type: "Watching", status: "False", reason: reasonOf(state), message };
  }
  const all = triggers.length > 0 && triggers.every(({ state }) => state === "watching");
  return all
    ? { type: "Watching", status: "True", reason: "Watching", message: "" }
    : { type: "Watching", status: "Unknown", reason: "NotYet", message: "" };
}
