import { z } from "zod";
import type { Origin } from "../../catalog/function-source.ts";
import { type FunctionReport, functionReportSchema, mergeReports, totalOf } from "./function-report.ts";
import { reasonOfCode, reasonOfState, type StatusReason } from "./reason.ts";

/** A condition in Kubernetes' format (metav1.Condition). */
export interface Condition {
  readonly type: "Ready" | "Built" | "Permitted" | "Watching" | "Deployed" | "Paused";
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** The fields of an existing condition that are used. */
export const conditionSchema = z.looseObject({ type: z.string(), status: z.string(), lastTransitionTime: z.string() });

/** The deployment that a function's running code is from. */
export interface DeployedBy {
  readonly revision: number | undefined;
  /** The account's name; `undefined` if it is not known yet. */
  readonly by: string | undefined;
}

/** The origin of a function. Does not contain its code. */
export interface FunctionSpec {
  readonly runtime: string;
  readonly source:
    | { readonly folder: { readonly manifest: string }; readonly configMap: null }
    | {
        readonly configMap: Pick<Extract<Origin, { type: "config-map" }>, "name" | "sha256" | "set"> & {
          readonly revision: number | null;
          readonly by: string | null;
        };
        readonly folder: null;
      };
}

/** The locations of a function's shards, one or more of which are on this replica. */
export interface Sharing {
  /** The name of this replica with the term of its process: `<identity>#<term>`. */
  readonly replica: string;
  /**
   * Whether the function's first shard is here. If so, this replica reports the state of the whole, and others that of their
   * shards.
   */
  readonly isFirst: boolean;
  /** Its slots on this replica. */
  readonly here: readonly number[];
  /** Its other slots with the replica that has each, named in the same way; "" for a free slot. */
  readonly elsewhere: ReadonlyMap<number, string>;
}

/** Maximum characters of a message. Longer ones are not read, and the definition allows 32 KiB. */
export const messageLimit = 2048;

/** Reasons because of which the function's newest version cannot be loaded. */
const unbuilt: ReadonlySet<StatusReason> = new Set([
  "BuildFailed",
  "LoadFailed",
  "ManifestRefused",
  "DeploymentDamaged",
]);

export function specOf(account: string, origin: Origin, deployed?: DeployedBy): FunctionSpec {
  if (origin.type === "folder") {
    return { runtime: account, source: { folder: { manifest: origin.manifest }, configMap: null } };
  }
  const { name, sha256, set } = origin;
  const configMap = { name, sha256, set, revision: deployed?.revision ?? null, by: deployed?.by ?? null };
  return { runtime: account, source: { configMap, folder: null } };
}

/** The fields of a report that Function objects contain, as a merge patch: null removes a field. */
const summaryOf = (report: FunctionReport) => ({
  lagSeconds: report.lagSeconds === undefined ? null : Math.floor(report.lagSeconds),
  lastEvent: report.lastEvent ?? null,
  failures: report.failures ?? null,
  deadLetters: report.deadLetters ?? null,
  queued: totalOf(report.queued, report.inFlight, report.spilled) ?? null,
  reason: report.reason ?? null,
  message: report.message?.slice(0, messageLimit) ?? null,
  // Without counts, which would be written again and again.
  canary: report.canary ? { id: report.canary.id, share: report.canary.share, state: report.canary.state } : null,
});

/**
 * @param before the current conditions; one whose status is unchanged keeps its time
 * @param now milliseconds since the epoch
 */
export function statusOf(report: FunctionReport, before: readonly Condition[], now: number) {
  const { lagSeconds, ...summary } = summaryOf(report);
  return {
    lag: lagSeconds === null ? null : `${lagSeconds}s`,
    ...summary,
    triggers: report.triggers.map(({ message: why, ...rest }) => ({
      ...rest,
      ...(why !== undefined && { message: why.slice(0, messageLimit) }),
    })),
    conditions: dated(conditionsOf(report, summary.message ?? ""), before, now),
  };
}

/** Adds the time since when each condition has its status. */
export const dated = (
  conditions: readonly Omit<Condition, "lastTransitionTime">[],
  before: readonly Condition[],
  now: number,
): Condition[] =>
  conditions.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    const since = old?.status === condition.status ? old.lastTransitionTime : timeOf(now);
    return { ...condition, lastTransitionTime: since };
  });

/** Whole seconds, as in metav1.Time. */
const timeOf = (now: number): string => new Date(now).toISOString().replace(/\.\d+Z$/, "Z");

function conditionsOf(report: FunctionReport, message: string): Omit<Condition, "lastTransitionTime">[] {
  const { ready, reason, code } = report;
  // For a refused change, the reason that belongs to its error code.
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

/** The condition for the worst of its triggers' states. */
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

const { ready, lastEvent, reason, message } = functionReportSchema.pick({
  ready: true,
  lastEvent: true,
  reason: true,
  message: true,
}).shape;
const count = z.number().nullish();

/** A replica's share of a function, as stored in the object's status. Unknown fields, written by other versions, are ignored. */
export const shareSchema = z.object({
  slots: z.array(z.number()),
  ready,
  lagSeconds: count,
  failures: count,
  deadLetters: count,
  queued: count,
  lastEvent: lastEvent.nullish(),
  reason: reason.nullish().catch("InternalError"),
  message: message.nullish(),
  canary: z.object({ id: z.string(), share: z.number(), state: z.enum(["running", "aborted"]) }).nullish(),
});

export type FunctionShare = z.infer<typeof shareSchema>;

/** Returns this replica's share in the form that is stored under its name. */
export const shareOf = (report: FunctionReport, slots: readonly number[]): FunctionShare => ({
  slots: [...slots],
  ready: report.ready,
  ...summaryOf(report),
});

/**
 * Returns the report of a whole function: counts are added up, and the worst state of any shard is that of the whole.
 * @param report report of the shards on this replica
 * @param shares the shares written by replicas; one counts while its replica has the slots it covers
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
    const { canary, ...part } = (counts && share) || { canary: null, ...untold(owner, slots[0]?.[0] ?? 0) };
    // A canary is reported once every part has it, and is aborted if it is in one.
    const own =
      canary && canary.id === whole.canary?.id ? { ...whole.canary, ...(isAborted(canary) && canary) } : undefined;
    return { ...mergeReports(whole, part), canary: own };
  }, report);
}

const isAborted = ({ state }: Pick<NonNullable<FunctionReport["canary"]>, "state">): boolean => state === "aborted";

const untold = (owner: string, slot: number): Pick<FunctionReport, "ready" | "reason" | "message"> => ({
  ready: false,
  reason: "Starting",
  message:
    owner === ""
      ? `no replica has slot ${slot} yet`
      : `${owner.replace(/#\d+$/, "")} has slot ${slot}, and has not reported its state`,
});
