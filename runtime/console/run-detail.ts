import { z } from "zod";
import type { HistoryRun } from "../history/history-row.ts";
import { describeHistoryRun } from "../history/run-answer.ts";
import type { LogAnswer } from "../observe/control-api.ts";
import type { AttemptRow, RunDetail, RunError } from "./schemas.ts";

const errorSchema = z.object({
  name: z.string(),
  message: z.string(),
  code: z.string().optional(),
  stack: z.string().default(""),
});

const lineSchema = z.looseObject({
  time: z.string(),
  level: z.string(),
  msg: z.string().default(""),
  run: z.string().optional(),
  attempt: z.number().optional(),
  /** Set by the handler. */
  fields: z.record(z.string(), z.unknown()).default({}),
  error: errorSchema.optional().catch(undefined),
});

type LogLine = z.infer<typeof lineSchema> & { readonly number: number };

/** Returns the kept lines that `wants` lets through as records; others are not parsed. */
export function readLines({ lines }: LogAnswer, wants: (line: string) => boolean): LogLine[] {
  return lines.flatMap(({ number, line }) => {
    if (!wants(line)) return [];
    const read = lineSchema.safeParse(parsed(line));
    return read.success ? [{ ...read.data, number }] : [];
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Describes an attempt with its calls. */
export function describeAttempt(run: HistoryRun): AttemptRow {
  const { initial } = run.detail;
  const { calls, causes, batch } = run.extra;
  const listedCalls = calls?.map((call) => ({ ...call, at: new Date(call.at).toISOString() }));
  return {
    ...describeHistoryRun(run),
    listedCalls: listedCalls ?? [],
    ...(causes && { causes }),
    ...(batch && { batch }),
    ...(initial && { initial }),
  };
}

/** The order of a run's attempts: by their ends. A replay begins with attempt 1 again. */
export const inOrder = (a: AttemptRow, b: AttemptRow): number =>
  a.at === b.at ? a.attempt - b.attempt : a.at < b.at ? -1 : 1;

/** Describes one run: its attempts, its log lines, and the error of its last failed attempt. */
export function describeRunDetail(
  of: Pick<RunDetail, "function" | "id" | "deadLetter" | "elsewhere">,
  attempts: readonly AttemptRow[],
  answer: LogAnswer,
  given: RunError | undefined,
  frameOf: (stack: string) => string | undefined,
): RunDetail {
  const quoted = JSON.stringify(of.id);
  const lines = readLines(answer, (line) => line.includes(quoted)).filter(({ run }) => run === of.id);
  const error: RunError | undefined = given ?? lines.findLast((line) => line.error !== undefined)?.error;
  const present = error && frameOf(error.stack);
  const frame = error?.frame ?? present;
  return {
    ...of,
    attempts: attempts.toSorted(inOrder),
    log: lines.map(({ number, time, level, msg, fields, error, attempt }) => ({
      number,
      time,
      level,
      message: msg,
      fields: {
        ...fields,
        ...(attempt !== undefined && { attempt }),
        ...(error && { error: `${error.name}: ${error.message}` }),
      },
    })),
    ...(error && {
      error: {
        ...error,
        ...(frame !== undefined && { frame }),
        ...(present !== undefined && frame !== present && { codeChanged: true }),
      },
    }),
  };
}
