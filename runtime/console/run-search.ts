import { setImmediate } from "node:timers/promises";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import { matchesFilters } from "../history/run-answer.ts";
import type { RunRow, RunsAnswer } from "../observe/control-api.ts";
import type { RunsQuestion } from "./schemas.ts";

/** Functions that are asked between two turns of the event loop. */
const perTurn = 20;

/**
 * Finds the newest runs of all functions, or of one, without a history. Functions are asked in the order of their last events, until no other can
 * have a newer run than those found.
 * @param runsOf returns a function's runs, newest first
 */
export async function searchRuns(
  reports: readonly Pick<FunctionReport, "name" | "lastEvent">[],
  question: RunsQuestion,
  runsOf: (name: string) => Promise<RunsAnswer>,
): Promise<{ readonly runs: RunRow[]; readonly elsewhere?: string }> {
  const { function: name, limit, since } = question;
  const from = since === undefined ? "" : new Date(since).toISOString();
  const chosen = reports
    .filter((report) => (name === undefined || report.name === name) && report.lastEvent !== undefined)
    .toSorted((a, b) => compare(b.lastEvent ?? "", a.lastEvent ?? ""));
  let found: RunRow[] = [];
  let elsewhere: string | undefined;
  for (const [index, report] of chosen.entries()) {
    const { lastEvent = "" } = report;
    const oldest = found.length < limit ? from : (found.at(-1)?.at ?? from);
    if (lastEvent < oldest) break;
    const answer = await runsOf(report.name);
    elsewhere ??= answer.elsewhere;
    const matching = answer.runs.filter((run) => run.at >= oldest && matchesFilters(run, question));
    if (matching.length > 0) {
      found = [...found, ...matching].toSorted((a, b) => compare(b.at, a.at)).slice(0, limit);
    }
    if (index % perTurn === perTurn - 1) await setImmediate();
  }
  return { runs: found, ...(elsewhere !== undefined && { elsewhere }) };
}

/** ISO 8601 texts compare in order of time. */
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
