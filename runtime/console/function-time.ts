import type { HistoryRun } from "../history/history-row.ts";
import type { FunctionTime } from "./schemas.ts";

/** Calls that are named. */
const mostCalls = 5;

/** Adds up where the time of attempts goes: to waiting, to the processor, and to which calls. */
export function describeTime(runs: readonly HistoryRun[]): FunctionTime {
  const mean = (of: (run: HistoryRun) => number) =>
    runs.length === 0 ? 0 : runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  const calls = Map.groupBy(
    runs.flatMap(({ extra }) => extra.calls ?? []),
    // Names of objects differ from run to run.
    ({ operation, target }) => `${operation} ${operation === "fetch" ? target : (target.split(" ", 1)[0] ?? "")}`,
  );
  const named = [...calls].map(([name, each]) => {
    const total = each.reduce((sum, { durationMs }) => sum + durationMs, 0);
    return { name, count: each.length, meanMs: total / each.length, ofRunMs: total / runs.length };
  });
  return {
    runs: runs.length,
    waitedMs: mean(({ waited }) => waited ?? 0),
    tookMs: mean(({ took }) => took),
    slowestMs: Math.max(0, ...runs.map(({ took }) => took)),
    cpuMs: mean(({ cpu }) => cpu ?? 0),
    calls: named.toSorted((a, b) => b.ofRunMs - a.ofRunMs).slice(0, mostCalls),
  };
}
