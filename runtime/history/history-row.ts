import { z } from "zod";
import type { CallList } from "../access/observer.ts";
import { cut } from "../base/wording.ts";
import type { EndedRun } from "../observe/run-log.ts";
import type { SqlRow, SqlValue } from "./sql-thread.ts";

/** Maximum characters of a stack, and of a message. */
const mostStack = 4_000;
const mostMessage = 1_000;
/** Maximum characters of what identifies a run: a longer event id or object name is not one of Kubernetes. */
const mostName = 1_000;
/** Maximum ids of a batch's events that are listed. */
const mostListed = 100;

const callSchema = z.object({
  operation: z.string(),
  target: z.string(),
  result: z.string(),
  status: z.number().optional(),
  at: z.number(),
  durationMs: z.number(),
  sent: z.number(),
  received: z.number(),
});

/** The short facts of a run, which a list shows as well. */
const detailSchema = z.object({
  /** Why it is synthetic; empty if the reason is not named. */
  synthetic: z.string().optional(),
  initial: z.boolean().optional(),
  /** The id of its trace. */
  trace: z.string().optional(),
  error: z.object({ name: z.string(), message: z.string(), code: z.string().optional(), stack: z.string() }).optional(),
  /** The lines around the error, as they ran. */
  frame: z.string().optional(),
});

/** The long facts, which only the page of one run shows. */
const extraSchema = z.object({
  calls: z.array(callSchema).optional(),
  /** How many further calls it made. */
  moreCalls: z.number().optional(),
  /** The causes that woke a reconciled key. */
  causes: z.array(z.string()).optional(),
  /** The ids of a batch's events. */
  batch: z.array(z.string()).optional(),
});

const rowSchema = z.object({
  number: z.number(),
  at: z.number(),
  function: z.string(),
  run: z.string(),
  trigger: z.string(),
  type: z.string(),
  kind: z.string(),
  object: z.string(),
  version: z.string(),
  attempt: z.number(),
  redelivered: z.number().transform((flag) => flag === 1),
  outcome: z.enum(["ok", "failed", "permanent", "interrupted"]),
  waited: z.number().nullable(),
  took: z.number(),
  /** Number of calls. */
  called: z.number(),
  detail: z
    .string()
    .nullable()
    .transform((text) => detailSchema.parse(text === null ? {} : JSON.parse(text))),
  extra: z
    .string()
    .nullable()
    .transform((text) => extraSchema.parse(text === null ? {} : JSON.parse(text))),
  /** CPU time in milliseconds. */
  cpu: z.number().nullable(),
  /** Bytes of the isolate's heap. */
  heap: z.number().nullable(),
});

/** An attempt in the history. `at`: its end, in epoch milliseconds; `waited`, `took`: milliseconds. */
export type HistoryRun = z.output<typeof rowSchema>;

/** The columns of a run's row, in the order of `valuesOf`; and without the long facts. */
export const wholeColumns = Object.keys(rowSchema.shape).join(", ");
export const shortColumns = wholeColumns.replace(/\bextra$/, "NULL AS extra");

/** @throws ZodError if this is no row of a run */
export const readRun = (row: SqlRow): HistoryRun => rowSchema.parse(row);

/** The parts of the runtime that a row needs. */
export interface RowParts {
  /** Removes the values of a function's Secrets. */
  readonly redact: (functionName: string, text: string) => string;
  /** Returns the source around the topmost place of a stack. */
  readonly frameOf: (functionName: string, stack: string) => string | undefined;
}

/** Returns the row of an attempt. */
export function valuesOf(run: EndedRun, number: number, parts: RowParts): SqlValue[] {
  const { object, outcome, receivedAt, beganAt } = run;
  const { calls, more } = run.calls ?? { calls: [], more: 0 };
  const detail = detailOf(run, parts);
  const extra = extraOf(run, parts);
  return [
    number,
    Math.round(run.endedAt),
    run.function,
    run.id.slice(0, mostName),
    run.trigger,
    run.causes ? "Reconcile" : run.type,
    object.kind,
    (object.namespace === "" ? object.name : `${object.namespace}/${object.name}`).slice(0, mostName),
    run.resourceVersion,
    run.attempt,
    run.redelivered ? 1 : 0,
    outcome.type,
    receivedAt === undefined ? null : Math.max(0, beganAt - receivedAt),
    rounded(outcome.type === "interrupted" ? run.endedAt - beganAt : outcome.durationMs),
    calls.length + more,
    detail === undefined ? null : JSON.stringify(detail),
    extra === undefined ? null : JSON.stringify(extra),
    run.cpuMs === undefined ? null : Math.round(run.cpuMs * 1000) / 1000,
    run.heapBytes ?? null,
  ];
}

/** Milliseconds with one decimal. */
const rounded = (ms: number): number => Math.round(ms * 10) / 10;

function detailOf(run: EndedRun, { redact, frameOf }: RowParts): z.input<typeof detailSchema> | undefined {
  const { function: name, flags, outcome, trace } = run;
  const error = "error" in outcome ? outcome.error : undefined;
  if (!flags.synthetic && !flags.initial && !error && trace === undefined) return undefined;
  const detail: z.input<typeof detailSchema> = {};
  if (flags.synthetic) detail.synthetic = flags.reason ?? "";
  if (flags.initial) detail.initial = true;
  if (trace !== undefined) detail.trace = trace;
  if (!error) return detail;
  const { name: errorName, message, code, stack } = error;
  const short = { name: cut(errorName, mostMessage), message: cut(message, mostMessage), stack: cut(stack, mostStack) };
  detail.error = code === undefined ? short : { ...short, code };
  const frame = frameOf(name, stack);
  if (frame !== undefined) detail.frame = redact(name, frame);
  return detail;
}

function extraOf(run: EndedRun, { redact }: RowParts): z.input<typeof extraSchema> | undefined {
  const { function: name, calls, causes, batch } = run;
  if (!calls && !causes && !batch) return undefined;
  return {
    ...(calls && listed(calls, (text) => redact(name, text))),
    ...(causes && { causes: causes.map(describeCause) }),
    ...(batch && { batch: batch.slice(0, mostListed).map((id) => id.slice(0, mostName)) }),
  };
}

function listed({ calls, more }: CallList, redact: (text: string) => string) {
  return {
    calls: calls.map((call) => ({
      ...call,
      target: redact(call.target),
      durationMs: rounded(call.durationMs),
    })),
    ...(more > 0 && { moreCalls: more }),
  };
}

/** Describes a cause in words: its type, and the trigger and object if it has them. */
function describeCause({ type, trigger, namespace, name }: NonNullable<EndedRun["causes"]>[number]): string {
  const object = [namespace, name].filter(Boolean).join("/");
  return [type, trigger, object].filter(Boolean).join(" ").slice(0, mostName);
}
