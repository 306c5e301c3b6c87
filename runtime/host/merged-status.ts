import type { WatchfireError } from "../base/errors.ts";
import {
  counted,
  countMerges,
  type FunctionReport,
  first,
  greatest,
  type Merges,
  mergeBy,
  mergeFiltered,
} from "../control/function-status/function-report.ts";
import { reasonOfCode } from "../control/function-status/reason.ts";
import type { UnloadedCounts } from "../engine/dispatcher.ts";
import type { FunctionStatus } from "../engine/function-dispatch.ts";
import type { DeadLetterStock } from "../journal/dead-letter-stats.ts";
import { describeRefused } from "./status.ts";

/** Merges the status of shards into one for each function: counts are added, and the worst of the other values is used. */
export function mergedStatus(all: readonly FunctionStatus[]): FunctionStatus[] {
  return [...Map.groupBy(all, ({ function: name }) => name).values()].flatMap((shards) => {
    const [head, ...more] = shards;
    return head ? [more.reduce((one, other) => mergeBy(merges, one, other), head)] : [];
  });
}

/** Adds up what several partitions have on record of a function. Counts that one of them does not know are absent. */
export function mergedUnloaded(all: readonly UnloadedCounts[]): UnloadedCounts | undefined {
  if (all.length === 0) return undefined;
  const letterStock = all.map((each) => each.letterStock).reduce(sumOfStocks);
  const known = all.flatMap(({ waiting }) => waiting ?? []);
  if (known.length < all.length) return { letterStock };
  const count = known.reduce((sum, each) => sum + each.count, 0);
  return { letterStock, waiting: { count, ageSeconds: Math.max(...known.map(({ ageSeconds }) => ageSeconds)) } };
}

const sumOfStocks = (one: DeadLetterStock, other: DeadLetterStock): DeadLetterStock => ({
  count: one.count + other.count,
  withoutBody: one.withoutBody + other.withoutBody,
  bytes: one.bytes + other.bytes,
  lettersDropped: one.lettersDropped + other.lettersDropped,
  bodiesDropped: one.bodiesDropped + other.bodiesDropped,
});

const merges: Merges<FunctionStatus> = {
  ...countMerges,
  function: first,
  ready: (one, other) => one && other,
  dueSeconds: greatest,
  keys: (one, other) => ({
    count: one.count + other.count,
    withoutObject: one.withoutObject + other.withoutObject,
    full: one.full || other.full,
  }),
  full: (one, other) => one || other,
  overShareSeconds: greatest,
  parentSeconds: (one, other) =>
    new Map([...one, ...other].map(([work]) => [work, (one.get(work) ?? 0) + (other.get(work) ?? 0)])),
  lastEvent: greatest,
  letterStock: sumOfStocks,
  conditionErrors: (one, other) => counted([...one, ...other], ["trigger", "condition"]),
  filtered: mergeFiltered,
  schedules: (one, other) => [...one, ...other],
  subscriptions: (one, other) => [...one, ...other],
};

/** Returns one report for each function: that of its first shard that is not ready, if any. */
export function worstShards(reports: readonly FunctionReport[]): FunctionReport[] {
  return [...Map.groupBy(reports, ({ name }) => name).values()].flatMap(
    (shards) => shards.find(({ ready }) => !ready) ?? shards.find(({ reason }) => reason) ?? shards[0] ?? [],
  );
}

/** Adds the functions with a damaged slot, even if other shards of them run. `why`: the fault by function. */
export function withStill(
  reports: readonly FunctionReport[],
  why: ReadonlyMap<string, WatchfireError>,
): FunctionReport[] {
  const running = new Set(reports.map(({ name }) => name));
  const others = [...why].filter(([name]) => !running.has(name));
  return [
    ...reports.map((report) => {
      const fault = why.get(report.name);
      if (!fault) return report;
      const { code, message } = fault;
      return { ...report, ready: false, reason: reasonOfCode(code), code, message };
    }),
    ...others.map(([name, fault]) => describeRefused({ name, file: "", faults: [fault] })),
  ];
}
