import { z } from "zod";
import type { ErrorCode } from "../../base/errors.ts";
import { reasons } from "./reason.ts";

/** Makes one value of those that two parts of a function have: two of its slots, or what two replicas have of it. */
type Merge<T> = (one: T, other: T) => T;

/** The rule of each field. */
export type Merges<T> = { readonly [Name in keyof T]-?: Merge<NonNullable<T[Name]>> };

/** Some of the fields of `T`; null: absent. */
type Absentable<T> = { readonly [Name in keyof T]?: T[Name] | null };

/** Merges field by field. A value that one of the two lacks is the other's. */
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
/** ISO 8601 texts compare as times do. */
export const greatest = <T extends number | string>(one: T, other: T): T => (one > other ? one : other);
export const first = <T>(one: T): T => one;

/** Those that agree in `alike` as one, the last of them with all their counts. */
export function counted<T extends { readonly count: number }>(all: readonly T[], alike: readonly (keyof T)[]): T[] {
  const groups = Map.groupBy(all, (each) => JSON.stringify(alike.map((name) => each[name])));
  return [...groups.values()].flatMap((group) => {
    const last = group.at(-1);
    return last ? [{ ...last, count: group.reduce((total, { count }) => total + count, 0) }] : [];
  });
}

/** Last events that were filtered, by their reasons. In the order of their times: of each group the newest stays. */
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

/** A field of a function's status: its form, and how the values of parts become one. */
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
  /** The worst of its sources' states; of a schedule `scheduled`. */
  state: z.string(),
  message: z.string().optional(),
  /** The next run of a schedule, ISO 8601; absent if it does not run here. */
  next: z.string().optional(),
  /** Conditions that could not be evaluated since the start, with the last reason; absent where there are none. */
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
  /** Its first list is complete. */
  ready: z.boolean(),
  objects: z.number(),
  bytes: z.number(),
  /** Milliseconds since the API server last said anything of it; absent before its first list. */
  ageMs: z.number().optional(),
});

/** The counts of each function; 0 if it does not run. */
const counts = {
  deadLetters: field(z.number(), sum),
  /** Those of them whose bodies had to go, so that the function keeps within its limit: they cannot be replayed. */
  deadLettersWithoutBody: field(z.number(), sum),
  /** Age of the oldest event that is not done. */
  lagSeconds: field(z.number(), greatest),
  queued: field(z.number(), sum),
  inFlight: field(z.number(), sum),
  spilled: field(z.number(), sum),
  /** Keys whose handler asked for a later time. */
  requeued: field(z.number(), sum),
  blockedLanes: field(z.number(), sum),
  failures: field(z.number(), sum),
};

const fields = {
  name: field(z.string(), first),
  /** Those of one group share executors with nobody else; absent where the manifest names none. */
  trustGroup: field(z.string().optional(), first),
  /** It runs, has caught up with its first lists, and nothing keeps it from taking events. */
  ready: field(z.boolean(), (one, other) => one && other),
  /** The failure in one word and in words, and its code. All three are those of the worst part. */
  reason: field(z.enum(reasons).optional(), first),
  message: field(z.string().optional(), first),
  code: field(z.custom<ErrorCode>().optional(), first),
  /** Who says that no handler begins; absent where it is not paused. */
  paused: field(z.enum(["manifest", "command"]).optional(), first),
  ...counts,
  /** In mode Reconcile: keys that are to run, now or later, and how many of them have no object. */
  keys: field(z.object({ count: z.number(), withoutObject: z.number() }).optional(), (one, other) => ({
    count: one.count + other.count,
    withoutObject: one.withoutObject + other.withoutObject,
  })),
  /** ISO 8601; when an attempt last ended. */
  lastEvent: field(z.string().optional(), greatest),
  /** Its last events that were filtered, 200 at most, by their reasons; absent where there are none. */
  filtered: field(z.array(filteredSchema).readonly().optional(), mergeFiltered),
  triggers: field(z.array(triggerSchema).readonly(), first),
  /** What it keeps in memory for `ctx.cache`; absent where that is nothing. */
  reads: field(z.array(readSchema).readonly().optional(), first),
};

/** One side of each field. */
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

/** How the counts of parts add up. */
export const countMerges = sideOf(counts, "merge");
const reportMerges = sideOf(fields, "merge") as Merges<FunctionReport>;

/** The counts alone; 0 of a function that does not run. */
export const countsOf = (of?: FunctionCounts): FunctionCounts =>
  Object.fromEntries(
    Object.keys(counts).map((name) => [name, of?.[name as keyof FunctionCounts] ?? 0]),
  ) as FunctionCounts;

/** The report of a function of which `part` is another part: counts are added up, and what is worst of either stands for both. */
export function mergeReports(whole: FunctionReport, part: Absentable<FunctionReport>): FunctionReport {
  const { reason, message, code } = gravity(part) > gravity(whole) ? part : whole;
  const said = { reason: reason ?? undefined, message: message ?? undefined, code: code ?? undefined };
  return { ...mergeBy(reportMerges, whole, part), ...said };
}

/** A part that does not run says more than one that runs with a remark. */
const gravity = ({ ready, reason }: Absentable<FunctionReport>): number => (ready ? 0 : 2) + (reason ? 1 : 0);
