import type { KubeObject } from "../object.ts";

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
  /**
   * Every call, in order, each with the arguments that matter. Reads (`kube.get`, `kube.list`, `kube.getScale`) count
   * only where one is among them.
   */
  readonly calls?: readonly FixtureCall[];
}

/** A file of `events/`: an event, what there is beside it, and what is expected. */
export interface Fixture {
  readonly event: object;
  /** The objects that exist beside the event's own. */
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
  readonly calls: readonly FixtureCall[];
}

/** One thing that is not as expected, each side as JSON. */
export interface Difference {
  /** `outcome`, `error`, `calls` for their number, or one of them such as `calls[0].patch.data`. */
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
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
  if (expected === actual) return [];
  return [{ what, expected: shown(expected), actual: shown(actual) }];
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const shown = (value: unknown): string => JSON.stringify(value) ?? "nothing";
