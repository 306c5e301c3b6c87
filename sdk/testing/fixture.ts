import { parseDuration } from "../duration.ts";
import type { KubeObject } from "../object.ts";
import { isNumberText, jsonOf } from "./numbers.ts";

/** A call of a handler, as `kube.patch` with what it was given: `{ call, ref, patch }`. */
export interface FixtureCall {
  /** Such as `kube.create`, `events.emit` or `fetch`. */
  readonly call: string;
  readonly [argument: string]: unknown;
}

/** What is expected of a handler. What is left out is not looked at, but for the outcome. */
export interface Expectation {
  /** Default `ok`. */
  readonly outcome?: "ok" | "failed" | "permanent";
  /** A part of the error's name and message. */
  readonly error?: string;
  /** The time of the `requeueAfter(…)` that it returns, such as `30s`. */
  readonly requeueAfter?: string;
  /** The time of the RetryAfter that it throws. */
  readonly retryAfter?: string;
  /** The ids of the batch's events that are to be tried again, in the batch's order. */
  readonly failed?: readonly string[];
  /**
   * Every call, in order, each with the arguments that matter. Reads (`kube.get`, `kube.list`, `kube.getScale`) count
   * only where one is among them.
   */
  readonly calls?: readonly FixtureCall[];
}

/** A file of `events/`: one of `event`, `events` and `run`, what there is beside it, and what is expected. */
export interface Fixture {
  /** A change of an object, or a time of a schedule. */
  readonly event?: object;
  /** Those of one batch. */
  readonly events?: readonly object[];
  /** A run of a reconciler: `key`, `object` unless it is gone, `causes`. */
  readonly run?: object;
  /** The objects that exist beside the event's own: what `ctx.cache` has as well. */
  readonly objects?: readonly KubeObject[];
  readonly env?: Readonly<Record<string, string>>;
  /** What a URL is answered with. Default: 200, and nothing. */
  readonly responses?: Readonly<Record<string, { readonly status?: number; readonly body?: string }>>;
  readonly expect?: Expectation;
}

/** What a handler did. */
export interface FixtureRun {
  readonly outcome: "ok" | "failed" | "permanent";
  readonly error?: string;
  readonly requeueAfterMs?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  /** Of a batch: the ids that are to be tried again. */
  readonly failed?: readonly string[] | undefined;
  readonly calls: readonly FixtureCall[];
}

/** One thing that is not as expected, each side as JSON. */
export interface Difference {
  /** `outcome`, `error`, `calls` for their number, or one of them such as `calls[0].patch.data`. */
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
}

/** A file of `events/` as a fixture: it may be an event alone, a list of a batch's, or a reconciler's run. Others are as they are. */
export function fixtureOf(file: unknown): Fixture {
  if (Array.isArray(file)) return { events: file };
  if (!isRecord(file)) return { event: file as object };
  if (["event", "events", "run", "expect"].some((name) => name in file)) return file;
  if ("key" in file) return { run: file };
  return "type" in file || "object" in file ? { event: file } : file;
}

const reads = new Set(["kube.get", "kube.list", "kube.getScale", "cache.get", "cache.list", "cache.age"]);

/** What is not as expected; nothing where all is. */
export function differencesOf(expectation: Expectation = {}, run: FixtureRun): Difference[] {
  const { outcome = "ok", error, calls } = expectation;
  const found: Difference[] = [];
  const saidError = run.error ?? "none";
  if (run.outcome !== outcome) {
    found.push({
      what: "outcome",
      expected: outcome,
      actual: run.error ? `${run.outcome}: ${run.error}` : run.outcome,
    });
  } else if (error !== undefined && !saidError.includes(error)) {
    found.push({ what: "error", expected: error, actual: saidError });
  }
  const times = [
    ["requeueAfter", expectation.requeueAfter, run.requeueAfterMs],
    ["retryAfter", expectation.retryAfter, run.retryAfterMs],
  ] as const;
  for (const [what, expected, actual] of times) {
    if (expected === undefined || parseDuration(expected) === actual) continue;
    found.push({ what, expected, actual: actual === undefined ? "none" : `${actual}ms` });
  }
  if (expectation.failed) found.push(...partsOf("failed", expectation.failed, run.failed ?? []));
  if (!calls) return found;
  const isRead = calls.some(({ call }) => reads.has(call));
  const made = run.calls.filter(({ call }) => isRead || !reads.has(call));
  if (made.length !== calls.length) {
    const names = (each: readonly FixtureCall[]) => each.map(({ call }) => call).join(", ") || "none";
    found.push({ what: "calls", expected: names(calls), actual: names(made) });
    return found;
  }
  for (const [index, call] of calls.entries()) found.push(...partsOf(`calls[${index}]`, call, made[index]));
  return found;
}

/** An object is expected by its fields, a list whole. */
function partsOf(what: string, expected: unknown, actual: unknown): Difference[] {
  if (isRecord(expected) && isRecord(actual)) {
    return Object.entries(expected).flatMap(([name, value]) => partsOf(`${what}.${name}`, value, actual[name]));
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((value, index) => partsOf(`${what}[${index}]`, value, actual[index]));
  }
  const difference = { what, expected: shown(expected), actual: shown(actual) };
  return difference.expected === difference.actual ? [] : [difference];
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isNumberText(value);

const shown = (value: unknown): string => jsonOf(value) ?? "nothing";
