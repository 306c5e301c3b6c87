import { z } from "zod";
import type { Origin } from "../../catalog/function-source.ts";
import { type FunctionReport, functionReportSchema, mergeReports } from "./function-report.ts";
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

/** The places of a function's parts; this replica has one of them. */
export interface Sharing {
  /** The name of this replica, and the term of its process: `<identity>#<term>`. */
  readonly replica: string;
  /** The function's first shard is here: this replica tells how the whole stands, and others how their parts do. */
  readonly isFirst: boolean;
  /** Its slots that are here. */
  readonly here: readonly number[];
  /** Its other slots, and the replica that has each, named alike; "" where none does. */
  readonly elsewhere: ReadonlyMap<number, string>;
}

/** Above a page nobody reads on, and the definition allows 32 KiB. */
const messageLimit = 2048;

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

/** The fields of a report that Function objects repeat, as a merge patch: null removes a field. */
const summaryOf = (report: FunctionReport) => ({
  lagSeconds: Math.floor(report.lagSeconds),
  lastEvent: report.lastEvent ?? null,
  failures: report.failures,
  deadLetters: report.deadLetters,
  queued: report.queued + report.inFlight + report.spilled,
  reason: report.reason ?? null,
  message: report.message?.slice(0, messageLimit) ?? null,
});

/**
 * @param before the conditions as they were: one whose status stays keeps its time
 * @param now milliseconds since the epoch
 */
export function statusOf(report: FunctionReport, before: readonly Condition[], now: number) {
  const { lagSeconds, ...summary } = summaryOf(report);
  return {
    lag: `${lagSeconds}s`,
    ...summary,
    triggers: report.triggers.map(({ message: why, ...rest }) => ({
      ...rest,
      ...(why !== undefined && { message: why.slice(0, messageLimit) }),
    })),
    conditions: conditionsOf(report, summary.message ?? "").map((condition): Condition => {
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

const { ready, lastEvent, reason, message, ...shared } = functionReportSchema.pick({
  ready: true,
  lagSeconds: true,
  lastEvent: true,
  failures: true,
  deadLetters: true,
  queued: true,
  reason: true,
  message: true,
}).shape;

/** A replica's part of a function, as the object's status has it. Fields that another version writes are ignored. */
export const shareSchema = z.object({
  slots: z.array(z.number()),
  ready,
  ...shared,
  lastEvent: lastEvent.nullish(),
  reason: reason.nullish().catch("InternalError"),
  message: message.nullish(),
});

export type FunctionShare = z.infer<typeof shareSchema>;

/** A replica's part, as it is kept under the replica's name. */
export const shareOf = (report: FunctionReport, slots: readonly number[]): FunctionShare => ({
  slots: [...slots],
  ready: report.ready,
  ...summaryOf(report),
});

/**
 * How a function stands as a whole: counts are added up, and what is worst of any part stands for all.
 * @param report of the part that is here
 * @param shares as replicas have written them. One counts while its replica has the slots that it is of.
 */
export function wholeReport(
  report: FunctionReport,
  elsewhere: Sharing["elsewhere"],
  shares: ReadonlyMap<string, FunctionShare | null>,
): FunctionReport {
  const owners = [...Map.groupBy(elsewhere, ([, owner]) => owner)];
  return owners.reduce((whole, [owner, slots]) => {
    const share = shares.get(owner);
    const counts = slots.every(([slot]) => share?.slots.includes(slot));
    return mergeReports(whole, (counts && share) || untold(owner, slots[0]?.[0] ?? 0));
  }, report);
}

const untold = (owner: string, slot: number): Pick<FunctionReport, "ready" | "reason" | "message"> => ({
  ready: false,
  reason: "Starting",
  message:
    owner === ""
      ? `no replica has slot ${slot} yet`
      : `${owner.replace(/#\d+$/, "")} has slot ${slot}, and has not told how it stands there`,
});
