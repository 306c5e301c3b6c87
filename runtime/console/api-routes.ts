import { z } from "zod";
import {
  logAnswerSchema,
  logQuestionSchema,
  pauseAnswerSchema,
  recordAnswerSchema,
  recordQuestionSchema,
  redeliveriesSchema,
  redeliverQuestionSchema,
  runFiltersSchema,
  runsAnswerSchema,
} from "../observe/control-api.ts";
import { deadLettersQuestionSchema, idsSchema, objectQuestionSchema } from "../observe/control-routes.ts";
import { deadLetterRowSchema, deadLetterSchema, replayAnswerSchema } from "../observe/dead-letter.ts";
import { explanationSchema } from "../observe/explanation.ts";
import { supportReportSchema } from "../observe/support-report.ts";
import {
  applyAnswerSchema,
  applyQuestionSchema,
  changesAnswerSchema,
  changesQuestionSchema,
  configurationSchema,
  devAnswerSchema,
  errorDetailSchema,
  errorsAnswerSchema,
  functionDetailSchema,
  functionsAnswerSchema,
  functionTimeSchema,
  loginAnswerSchema,
  loginCodeSchema,
  loginQuestionSchema,
  overviewSchema,
  revisionsAnswerSchema,
  runDetailSchema,
  runEventSchema,
  runSearchSchema,
  runsQuestionSchema,
  savedFixtureSchema,
  seriesAnswerSchema,
  seriesQuestionSchema,
  sessionAnswerSchema,
  sessionQuestionSchema,
  sourceAnswerSchema,
  sourcesAnswerSchema,
} from "./schemas.ts";

/** One route of `/api`, as `/api/openapi.json` describes it. */
export interface ApiRoute {
  readonly method: "get" | "post" | "delete";
  /** Below `/api`; variables are in braces. */
  readonly path: string;
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly answer: z.ZodType;
  /** `watchfire dev` alone has it. */
  readonly isDev?: boolean;
}

const nothing = z.object({});

export const runQuestionSchema = z.strictObject({ function: z.string().max(253) });

/** All routes: the console's own, and those that the commands ask as well. */
export const apiRoutes: readonly ApiRoute[] = [
  { method: "get", path: "/overview", summary: "What needs attention, functions and sources", answer: overviewSchema },
  { method: "get", path: "/functions", summary: "All functions with their counts", answer: functionsAnswerSchema },
  {
    method: "get",
    path: "/functions/{name}",
    summary: "One function: the way of an event, and its manifest as understood",
    answer: functionDetailSchema,
  },
  {
    method: "get",
    path: "/functions/{name}/source",
    summary: "The text of a function's handler as it runs",
    answer: sourceAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/{name}/revisions",
    summary: "The deployments of a function's set, newest first",
    answer: revisionsAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/{name}/time",
    summary: "The parts of the time of a function's last attempts",
    answer: functionTimeSchema,
  },
  {
    method: "get",
    path: "/changes",
    summary: "Who changed what since the start, newest first",
    query: changesQuestionSchema,
    answer: changesAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/{name}/runs",
    summary: "A function's attempts that match, newest first",
    query: runFiltersSchema,
    answer: runsAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/runs",
    summary: "The attempts of all functions that match, newest first",
    query: runFiltersSchema,
    answer: runsAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/logs",
    summary: "The last log lines of all functions",
    query: logQuestionSchema,
    answer: logAnswerSchema,
  },
  {
    method: "get",
    path: "/functions/{name}/logs",
    summary: "A function's last log lines",
    query: logQuestionSchema,
    answer: logAnswerSchema,
  },
  { method: "post", path: "/functions/{name}/pause", summary: "Begins no more attempts", answer: pauseAnswerSchema },
  { method: "post", path: "/functions/{name}/resume", summary: "Ends a pause", answer: pauseAnswerSchema },
  {
    method: "post",
    path: "/functions/{name}/redeliver",
    summary: "Delivers events to the handler again",
    body: redeliverQuestionSchema,
    answer: redeliveriesSchema,
  },
  {
    method: "post",
    path: "/functions/{name}/record",
    summary: "Records what the handler receives",
    body: recordQuestionSchema,
    answer: recordAnswerSchema,
  },
  {
    method: "get",
    path: "/runs",
    summary: "The newest attempts of all functions that match",
    query: runsQuestionSchema,
    answer: runSearchSchema,
  },
  {
    method: "get",
    path: "/runs/{id}",
    summary: "One run: attempts, log lines, error",
    query: runQuestionSchema,
    answer: runDetailSchema,
  },
  {
    method: "get",
    path: "/runs/{id}/event",
    summary: "What a run received, as a fixture without secrets, if it is on record",
    query: runQuestionSchema,
    answer: runEventSchema,
  },
  {
    method: "post",
    path: "/runs/{id}/fixture",
    summary: "Writes what a run received into its function's folder of fixtures; `watchfire dev` alone does",
    body: runQuestionSchema,
    answer: savedFixtureSchema,
  },
  { method: "get", path: "/errors", summary: "Errors by code, place and message", answer: errorsAnswerSchema },
  {
    method: "get",
    path: "/errors/{fingerprint}",
    summary: "One group of errors: its occurrences, over time and one by one",
    answer: errorDetailSchema,
  },
  {
    method: "get",
    path: "/dead-letters",
    summary: "Dead letters, oldest first",
    query: deadLettersQuestionSchema,
    answer: z.array(deadLetterRowSchema),
  },
  { method: "get", path: "/dead-letters/{id}", summary: "One dead letter with its body", answer: deadLetterSchema },
  {
    method: "post",
    path: "/dead-letters/replay",
    summary: "Delivers dead letters again, or once their function is loaded",
    body: idsSchema,
    answer: replayAnswerSchema,
  },
  {
    method: "post",
    path: "/dead-letters/drop",
    summary: "Deletes dead letters for good",
    body: idsSchema,
    answer: nothing,
  },
  {
    method: "get",
    path: "/support",
    summary: "The state for somebody who helps, without secrets",
    answer: supportReportSchema,
  },
  {
    method: "get",
    path: "/config",
    summary: "Versions, flags, place and limits of the runtime, without secrets",
    answer: configurationSchema,
  },
  {
    method: "get",
    path: "/metrics/series",
    summary: "Events, errors and waiting events of the last hour, one sample each 10 seconds",
    query: seriesQuestionSchema,
    answer: seriesAnswerSchema,
  },
  {
    method: "get",
    path: "/dev",
    summary: "Faults of types, and samples; `watchfire dev` alone has it",
    answer: devAnswerSchema,
    isDev: true,
  },
  {
    method: "post",
    path: "/dev/apply",
    summary: "Applies objects in YAML; `watchfire dev` alone does",
    body: applyQuestionSchema,
    answer: applyAnswerSchema,
    isDev: true,
  },
  { method: "get", path: "/sources", summary: "All lists and watches", answer: sourcesAnswerSchema },
  {
    method: "get",
    path: "/explain/{function}",
    summary: "Why a function's handler did not run for an object",
    query: objectQuestionSchema,
    answer: explanationSchema,
  },
  {
    method: "post",
    path: "/login-codes",
    summary: "Makes a code for one login; for callers with a token",
    answer: loginCodeSchema,
  },
  {
    method: "post",
    path: "/session",
    summary: "Exchanges a code or a token for a session; needs neither token nor session",
    body: loginQuestionSchema,
    answer: loginAnswerSchema,
  },
  {
    method: "get",
    path: "/session",
    summary: "Who asks, and whether they may change a function, or all",
    query: sessionQuestionSchema,
    answer: sessionAnswerSchema,
  },
  { method: "delete", path: "/session", summary: "Ends the session", answer: nothing },
];
