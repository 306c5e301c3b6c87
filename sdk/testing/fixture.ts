import { parseDuration } from "../duration.ts";
import type { KubeObject } from "../object.ts";
import { isNumberText, jsonOf } from "./numbers.ts";

/** A call of a handler with its arguments, such as `{ call, ref, patch }` for `kube.patch`. */
export interface FixtureCall {
  /** Such as `kube.create`, `events.emit` or `fetch`. */
  readonly call: string;
  readonly [argument: string]: unknown;
}

/** Expectation about a handler. Omitted fields are not checked, except the outcome. */
export interface Expectation {
  /** Default `ok`. */
  readonly outcome?: "ok" | "failed" | "permanent";
  /** A part of the error's name and message. */
  readonly error?: string;
  /** Argument of the `requeueAfter(…)` that it returns, such as `30s`. */
  readonly requeueAfter?: string;
  /** Argument of the RetryAfter that it throws. */
  readonly retryAfter?: string;
  /** Ids of the batch's events to be retried, in the batch's order. */
  readonly failed?: readonly string[];
  /**
   * Every call, in order, each with the arguments to check. Calls that only read, such as `kube.get`, and calls of `ctx.state` are
   * only compared if the list contains one.
   */
  readonly calls?: readonly FixtureCall[];
  /** All entries of `ctx.state` after the run: those before it, if the handler failed. */
  readonly state?: Readonly<Record<string, unknown>>;
}

/** A file of `events/`: one of `event`, `events` and `run`, the surrounding objects, and the expectation. */
export interface Fixture {
  /** A change of an object, or a scheduled time. */
  readonly event?: object;
  /** Events of one batch. */
  readonly events?: readonly object[];
  /** A run of a reconciler: `key`, `object` unless it is gone, `causes`. */
  readonly run?: object;
  /** Existing objects besides the event's own; they are also in `ctx.cache`. */
  readonly objects?: readonly KubeObject[];
  readonly env?: Readonly<Record<string, string>>;
  /** The entries of `ctx.state` before the run. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Responses by URL. Default: status 200 without a body. */
  readonly responses?: Readonly<Record<string, { readonly status?: number; readonly body?: string }>>;
  readonly expect?: Expectation;
}

/** Record of a handler's run. */
export interface FixtureRun {
  readonly outcome: "ok" | "failed" | "permanent";
  readonly error?: string;
  readonly requeueAfterMs?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  /** For a batch: the ids to be retried. */
  readonly failed?: readonly string[] | undefined;
  readonly calls: readonly FixtureCall[];
  /** The entries of `ctx.state` after the run. */
  readonly state?: Readonly<Record<string, unknown>> | undefined;
}

/** One difference from the expectation, each side as JSON. */
export interface Difference {
  /** `outcome`, `error`, `calls` for their number, or a part of a call such as `calls[0].patch.data`. */
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
}

/**
 * Converts a file of `events/` to a fixture: the file may hold only an event, a list of a batch's events, or a reconciler's run.
 * Other files are returned unchanged.
 */
export function fixtureOf(file: unknown): Fixture {
  if (Array.isArray(file)) return { events: file };
  if (!isRecord(file)) return { event: file as object };
  if (["event", "events", "run", "expect"].some((name) => name in file)) return file;
  if ("key" in file) return { run: file };
  return "type" in file || "object" in file ? { event: file } : file;
}

/** Calls that only read: those of the cache, and of `ctx.kube` by the beginning of the method's name. */
const reads = /^(cache\.|kube\.(get|list|kinds))/;

/** Returns the differences from the expectation; empty if there are no differences. */
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
  if (expectation.state) found.push(...entriesOf(expectation.state, run.state ?? {}));
  if (expectation.failed) found.push(...partsOf("failed", expectation.failed, run.failed ?? []));
  if (!calls) return found;
  const isRead = calls.some(({ call }) => reads.test(call));
  const isOfState = calls.some(({ call }) => call.startsWith("state."));
  const made = run.calls.filter(({ call }) => (call.startsWith("state.") ? isOfState : isRead || !reads.test(call)));
  if (made.length !== calls.length) {
    const names = (each: readonly FixtureCall[]) => each.map(({ call }) => call).join(", ") || "none";
    found.push({ what: "calls", expected: names(calls), actual: names(made) });
    return found;
  }
  for (const [index, call] of calls.entries()) found.push(...partsOf(`calls[${index}]`, call, made[index]));
  return found;
}

/** Entries are compared whole. */
function entriesOf(
  expected: Readonly<Record<string, unknown>>,
  actual: Readonly<Record<string, unknown>>,
): Difference[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(actual)])].flatMap((key) => {
    const difference = { what: `state.${key}`, expected: entryOf(expected, key), actual: entryOf(actual, key) };
    return difference.expected === difference.actual ? [] : [difference];
  });
}

const entryOf = (entries: Readonly<Record<string, unknown>>, key: string): string =>
  Object.hasOwn(entries, key) ? shown(sorted(entries[key])) : "nothing";

/** Returns the value with sorted fields, so that their order does not matter. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, sorted(value[name])]),
  );
}

/** Objects are compared by the expected fields, lists as a whole. */
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
