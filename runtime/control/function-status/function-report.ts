import { z } from "zod";
import type { ErrorCode } from "../../base/errors.ts";
import { reasons } from "./reason.ts";

/** Combines the values of a field from two parts of a function: two of its slots, or two replicas' shares. */
type Merge<T> = (one: T, other: T) => T;

/** The combination rule of each field. */
export type Merges<T> = { readonly [Name in keyof T]-?: Merge<NonNullable<T[Name]>> };

/** Some of the fields of `T`; null means absent. */
type Absentable<T> = { readonly [Name in keyof T]?: T[Name] | null };

/** Combines two values field by field. If one lacks a field, the other's is used. */
export function mergeBy<T extends object>(rules: Merges<T>, one: T, other: Absentable<T>): T {
  const merged = { ...one };
  for (const name of Object.keys(rules) as (keyof T)[]) {
    const [mine, others] = [one[name], other[name]];
    if (others == null) continue;
    merged[name] = mine == null ? others : rules[name](mine, others);
  }
  return merged;
}

const sum = (one: number, other: number): number => one + other;
/** Returns the greater value. ISO 8601 texts compare in order of time. */
export const greatest = <T extends number | string>(one: T, other: T): T => (one > other ? one : other);
export const first = <T>(one: T): T => one;

/** Groups items that are equal in the fields `alike`. Returns the last item of each group with the sum of the counts. */
export function counted<T extends { readonly count: number }>(all: readonly T[], alike: readonly (keyof T)[]): T[] {
  const groups = Map.groupBy(all, (each) => JSON.stringify(alike.map((name) => each[name])));
  return [...groups.values()].flatMap((group) => {
    const last = group.at(-1);
    return last ? [{ ...last, count: group.reduce((total, { count }) => total + count, 0) }] : [];
  });
}

/** Combines the summaries of filtered events by reason. Sorted by time, so that the newest of each group is kept. */
export const mergeFiltered = <
  T extends Omit<z.infer<typeof filteredSchema>, "last"> & { readonly last: number | string },
>(
  one: readonly T[],
  other: readonly T[],
): T[] =>
  counted(
    [...one, ...other].toSorted((a, b) => (a.last < b.last ? -1 : Number(a.last > b.last))),
    ["trigger", "why", "condition"],
  );

/** A field of a function's status: its schema, and how the values of parts are combined. */
const field = <S extends z.ZodType>(schema: S, merge: Merge<NonNullable<z.infer<S>>>) => ({ schema, merge });

const filteredSchema = z.object({
  trigger: z.string(),
  why: z.string(),
  condition: z.string().optional(),
  count: z.number(),
  /** ISO 8601. */
  last: z.string(),
});

const triggerSchema = z.object({
  name: z.string(),
  apiVersion: z.string(),
  kind: z.string(),
  /** The worst of its sources' states; `scheduled` for a schedule. */
  state: z.string(),
  message: z.string().optional(),
  /** The next run of a schedule, as ISO 8601; absent if it does not run here. */
  next: z.string().optional(),
  /** Conditions that could not be evaluated since the start, with the last reason; absent if there are no such conditions. */
  conditionErrors: z
    .array(z.object({ condition: z.string(), count: z.number(), message: z.string() }))
    .readonly()
    .optional(),
});

const readSchema = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  /** The worst of its sources' states. */
  state: z.string(),
  message: z.string().optional(),
  /** Whether its first list is complete. */
  ready: z.boolean(),
  objects: z.number(),
  bytes: z.number(),
  /** Milliseconds since the API server last sent anything about it; absent before its first list. */
  ageMs: z.number().optional(),
});

const versionSchema = z.object({
  runs: z.number(),
  failures: z.number(),
  /** Absent without an attempt. The highest of all parts. */
  p50Ms: z.number().optional(),
  p99Ms: z.number().optional(),
});

const canarySchema = z.object({
  id: z.string(),
  /** Percentage of the keys. */
  share: z.number(),
  state: z.enum(["running", "aborted"]),
  /** Why it is aborted. */
  reason: z.string().optional(),
  /** When the runtime began to count, as ISO 8601: the start of the canary, or of the process. */
  since: z.string(),
  current: versionSchema,
  canary: versionSchema,
});

type ReportedCanary = z.infer<typeof canarySchema>;

const count = z.number().optional();

/** Counts of each function; absent if they are not known. */
const counts = {
  deadLetters: field(count, sum),
  /** Number of them whose bodies were dropped to keep the function within its limit, so that they cannot be replayed. */
  deadLettersWithoutBody: field(count, sum),
  /** Age of the oldest event that is not done. */
  lagSeconds: field(count, greatest),
  queued: field(count, sum),
  inFlight: field(count, sum),
  /** Events on disk; of a function that is not loaded, keys as well. */
  spilled: field(count, sum),
  /** Keys whose handler requested a later run. */
  requeued: field(count, sum),
  blockedLanes: field(count, sum),
  failures: field(count, sum),
};

const fields = {
  name: field(z.string(), first),
  /** Functions with the same trust group share executors with each other only; absent if the manifest names no group. */
  trustGroup: field(z.string().optional(), first),
  /** The deployed set that it belongs to; absent if its code is in a folder. */
  set: field(z.string().optional(), first),
  /** Whether it runs, has processed its first lists, and can take events. */
  ready: field(z.boolean(), (one, other) => one && other),
  /** The failure as one word, as a message, and as a code. All three are those of the worst part. */
  reason: field(z.enum(reasons).optional(), first),
  message: field(z.string().optional(), first),
  code: field(z.custom<ErrorCode>().optional(), first),
  /** Set if no handler starts because it is paused: by the manifest, by the FunctionSet of its set, or by a command. */
  paused: field(z.enum(["manifest", "set", "command"]).optional(), first),
  ...counts,
  /** In mode Reconcile: number of keys that will run, now or later, and how many of them have no object. */
  keys: field(z.object({ count: z.number(), withoutObject: z.number() }).optional(), (one, other) => ({
    count: one.count + other.count,
    withoutObject: one.withoutObject + other.withoutObject,
  })),
  /** When an attempt last ended, as ISO 8601. */
  lastEvent: field(z.string().optional(), greatest),
  /** Its filtered events since it was loaded, by reason; absent without such events. */
  filtered: field(z.array(filteredSchema).readonly().optional(), mergeFiltered),
  triggers: field(z.array(triggerSchema).readonly(), first),
  /** The other code that gets a share of its keys; absent without one. */
  canary: field(canarySchema.optional(), (one, other) => ({
    ...(other.state === "aborted" ? other : one),
    since: one.since < other.since ? one.since : other.since,
    current: mergeVersions(one.current, other.current),
    canary: mergeVersions(one.canary, other.canary),
  })),
  /** The objects it keeps in memory for `ctx.cache`; absent without reads. */
  reads: field(z.array(readSchema).readonly().optional(), first),
};

const mergeVersions = (one: ReportedCanary["canary"], other: ReportedCanary["canary"]): ReportedCanary["canary"] =>
  mergeBy(versionMerges, one, other);
const versionMerges: Merges<ReportedCanary["canary"]> = { runs: sum, failures: sum, p50Ms: greatest, p99Ms: greatest };

/** Extracts the schema or the combination rule of each field. */
const sideOf = <Side extends "schema" | "merge", T extends Readonly<Record<string, Readonly<Record<Side, unknown>>>>>(
  of: T,
  side: Side,
) =>
  Object.fromEntries(Object.entries(of).map(([name, each]) => [name, each[side]])) as {
    [Name in keyof T]: T[Name][Side];
  };

/** One function on the status page. */
export const functionReportSchema = z.object(sideOf(fields, "schema"));
export type FunctionReport = Readonly<z.infer<typeof functionReportSchema>>;

type FunctionCounts = Pick<FunctionReport, keyof typeof counts>;

/** Returns the counts of a function that is not loaded, of which nothing is in memory. `waiting`: on disk, if it is known. */
export const recordedCountsOf = (
  letters: { readonly count: number; readonly withoutBody: number },
  waiting: { readonly count: number; readonly ageSeconds: number } | undefined,
): FunctionCounts => ({
  deadLetters: letters.count,
  deadLettersWithoutBody: letters.withoutBody,
  ...(waiting && { spilled: waiting.count, lagSeconds: waiting.ageSeconds }),
  ...{ queued: 0, inFlight: 0, requeued: 0, blockedLanes: 0, failures: 0 },
});

/** The combination rules of the counts. */
export const countMerges = sideOf(counts, "merge");
const reportMerges = sideOf(fields, "merge") as Merges<FunctionReport>;

/** Returns only the counts that are known. */
export const countsOf = (of: FunctionCounts): FunctionCounts =>
  Object.fromEntries(
    Object.keys(counts).flatMap((name) => {
      const value = of[name as keyof FunctionCounts];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** Adds counts up; `undefined` if one is not known. */
export const totalOf = (...counts: readonly (number | undefined)[]): number | undefined =>
  counts.reduce((sum, each) => (sum === undefined || each === undefined ? undefined : sum + each), 0);

/** Combines a function's report with another part's: counts are added up, and the worse state is that of both. */
export function mergeReports(whole: FunctionReport, part: Absentable<FunctionReport>): FunctionReport {
  const { reason, message, code } = gravity(part) > gravity(whole) ? part : whole;
  const said = { reason: reason ?? undefined, message: message ?? undefined, code: code ?? undefined };
  return { ...mergeBy(reportMerges, whole, part), ...said };
}

/** A part that does not run is worse than one that runs with a reason. */
const gravity = ({ ready, reason }: Absentable<FunctionReport>): number => (ready ? 0 : 2) + (reason ? 1 : 0);
