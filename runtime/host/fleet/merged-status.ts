import type { WatchfireError } from "../../base/errors.ts";
import type { FunctionReport } from "../../control/function-status/function-report.ts";
import { reasonOfCode } from "../../control/function-status/reason.ts";
import type { FunctionStatus, KeyCounts } from "../../engine/function-dispatch.ts";
import { describeRefused } from "../status.ts";

/** How functions do whose shards are here, each as one: counts are added up, and the worst of the rest stands for all. */
export function mergedStatus(all: readonly FunctionStatus[]): FunctionStatus[] {
  return [...Map.groupBy(all, ({ function: name }) => name).values()].flatMap((shards) => {
    const [first, ...more] = shards;
    return first ? [more.reduce(merged, first)] : [];
  });
}

const merged = (one: FunctionStatus, other: FunctionStatus): FunctionStatus => ({
  function: one.function,
  ready: one.ready && other.ready,
  lagSeconds: Math.max(one.lagSeconds, other.lagSeconds),
  dueSeconds: Math.max(one.dueSeconds, other.dueSeconds),
  queued: one.queued + other.queued,
  inFlight: one.inFlight + other.inFlight,
  spilled: one.spilled + other.spilled,
  requeued: one.requeued + other.requeued,
  keys: one.keys && other.keys ? mergedKeys(one.keys, other.keys) : (one.keys ?? other.keys),
  full: one.full || other.full,
  overShareSeconds: greatest(one.overShareSeconds, other.overShareSeconds),
  parentSeconds: new Map(
    [...one.parentSeconds, ...other.parentSeconds].map(([work]) => [
      work,
      (one.parentSeconds.get(work) ?? 0) + (other.parentSeconds.get(work) ?? 0),
    ]),
  ),
  blockedLanes: one.blockedLanes + other.blockedLanes,
  lastEvent: greatest(one.lastEvent, other.lastEvent),
  deadLetters: one.deadLetters + other.deadLetters,
  letterStock: {
    count: one.letterStock.count + other.letterStock.count,
    withoutBody: one.letterStock.withoutBody + other.letterStock.withoutBody,
    bytes: one.letterStock.bytes + other.letterStock.bytes,
    lettersDropped: one.letterStock.lettersDropped + other.letterStock.lettersDropped,
    bodiesDropped: one.letterStock.bodiesDropped + other.letterStock.bodiesDropped,
  },
  failures: one.failures + other.failures,
  conditionErrors: counted([...one.conditionErrors, ...other.conditionErrors], ["trigger", "condition"]),
  // In the order of their times: of each group the newest stays.
  filtered: counted(
    [...one.filtered, ...other.filtered].toSorted((a, b) => a.last - b.last),
    ["trigger", "why", "condition"],
  ),
  schedules: [...one.schedules, ...other.schedules],
  subscriptions: [...one.subscriptions, ...other.subscriptions],
});

const mergedKeys = (one: KeyCounts, other: KeyCounts): KeyCounts => ({
  count: one.count + other.count,
  withoutObject: one.withoutObject + other.withoutObject,
  full: one.full || other.full,
});

const greatest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

/** Those that agree in `alike` as one, the last of them with all their counts. */
function counted<T extends { readonly count: number }>(all: readonly T[], alike: readonly (keyof T)[]): T[] {
  const groups = Map.groupBy(all, (each) => JSON.stringify(alike.map((field) => each[field])));
  return [...groups.values()].flatMap((group) => {
    const last = group.at(-1);
    return last ? [{ ...last, count: group.reduce((sum, { count }) => sum + count, 0) }] : [];
  });
}

/** One report for each function: of several shards here the first that is not ready. */
export function worstShards(reports: readonly FunctionReport[]): FunctionReport[] {
  return [...Map.groupBy(reports, ({ name }) => name).values()].flatMap(
    (shards) => shards.find(({ ready }) => !ready) ?? shards.find(({ reason }) => reason) ?? shards[0] ?? [],
  );
}

/** The reports, with those of functions that stand still in a slot: `why`, by function, whatever other shards of them do. */
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
