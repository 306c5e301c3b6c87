import type { RunFilters, RunRow } from "../observe/control-api.ts";
import type { HistoryRun } from "./history-row.ts";
import type { HistoryQuestion } from "./run-history.ts";

/** Describes an attempt for commands and the console. */
export function describeHistoryRun(run: HistoryRun): RunRow {
  const { error, synthetic, trace } = run.detail;
  return {
    function: run.function,
    id: run.run,
    trigger: run.trigger,
    type: run.type,
    kind: run.kind,
    object: run.object,
    resourceVersion: run.version,
    attempt: run.attempt,
    outcome: run.outcome,
    ...(run.waited !== null && { waitedMs: run.waited }),
    durationMs: run.took,
    at: new Date(run.at).toISOString(),
    ...(run.redelivered && { redelivered: true }),
    ...(synthetic !== undefined && { synthetic }),
    ...(trace !== undefined && { trace }),
    ...(run.called > 0 && { calls: run.called }),
    ...(run.cpu !== null && { cpuMs: run.cpu }),
    ...(run.heap !== null && { heapBytes: run.heap }),
    ...(error && { error: `${error.code ?? error.name}: ${error.message}` }),
  };
}

/** The question that filters ask. */
export function historyQuestion(
  name: string | undefined,
  filters: RunFilters & Pick<HistoryQuestion, "log" | "logged">,
): HistoryQuestion {
  const { since, before, ...rest } = filters;
  return {
    ...rest,
    function: name,
    since: since === undefined ? undefined : Date.parse(since),
    before: before === undefined ? undefined : Date.parse(before),
  };
}

/** Whether an attempt that is in memory matches. */
export function matchesFilters(run: RunRow, { outcome, object, trigger, since, before }: RunFilters): boolean {
  if (outcome !== undefined && run.outcome !== outcome) return false;
  if (trigger !== undefined && run.trigger !== trigger) return false;
  if (object !== undefined && !`${run.kind} ${run.object}`.toLowerCase().includes(object.trim().toLowerCase()))
    return false;
  const at = Date.parse(run.at);
  return (since === undefined || at >= Date.parse(since)) && (before === undefined || at < Date.parse(before));
}
