/** Unit tests of handlers and reconcilers: runs one with objects in memory, and records its calls. */
import type { Cache, CacheQuery } from "./cache.ts";
import { createKube, type RawKube } from "./client.ts";
import { PermanentError, RetryAfter } from "./errors.ts";
import type { NumbersReader } from "./exact-json.ts";
import type {
  BatchHandler,
  BatchResult,
  Cause,
  Context,
  EventOf,
  FetchInit,
  FetchResponse,
  Handler,
  Key,
  Reconciler,
  Reconciliation,
  Scheduled,
  ScheduledEvent,
  Triggers,
  WatchEvent,
} from "./index.ts";
import type { Writable } from "./kinds.ts";
import type { Kube, Ref } from "./kube.ts";
import type { KubeObject, UnknownObject } from "./object.ts";
import type { Call, EmitArguments } from "./operations.ts";
import { RequeueAfter } from "./requeue.ts";
import { createState } from "./state.ts";
import { type Difference, differencesOf, type Fixture, type FixtureCall, fixtureOf } from "./testing/fixture.ts";
import { type DeclaredRead, memoryCache } from "./testing/memory-cache.ts";
import { MemoryCluster } from "./testing/memory-cluster.ts";
import { isStateOperation, MemoryState } from "./testing/memory-state.ts";
import { readBy, writtenBy } from "./testing/numbers.ts";

export {
  type Difference,
  differencesOf,
  type Expectation,
  type Fixture,
  type FixtureCall,
  type FixtureRun,
  fixtureOf,
} from "./testing/fixture.ts";
export type { DeclaredRead } from "./testing/memory-cache.ts";

/** Options of a test run. */
export interface RunOptions {
  /** The existing objects. The event's own object is added, unless it was deleted or is listed here. */
  readonly objects?: readonly KubeObject[];
  /** The manifest's `reads`, which select the objects in `ctx.cache`. Without it, every access is refused. */
  readonly reads?: readonly DeclaredRead[];
  /** Calls that the test implements itself, such as `{ patch: async () => { throw new ConflictError("…") } }`. */
  readonly kube?: Partial<RawKube>;
  readonly env?: Readonly<Record<string, string>>;
  /** The entries of `ctx.state` before the run. */
  readonly state?: Readonly<Record<string, unknown>>;
  /** Without it, every fetch fails. */
  readonly fetch?: (url: string, init?: FetchInit) => Promise<FetchResponse>;
  readonly signal?: AbortSignal;
}

/** One call of `ctx.kube`. */
export interface RecordedCall {
  readonly method: keyof Kube;
  readonly arguments: readonly unknown[];
}

/** Record of a handler's run. */
export interface Run {
  /** Outcome in the runtime's terms: `failed` is retried, `permanent` is not. */
  readonly outcome: "ok" | "failed" | "permanent";
  /** The error that it threw. */
  readonly error?: unknown;
  /** For a RetryAfter: its delay in milliseconds. */
  readonly retryAfterMs?: number;
  /** If it returned `requeueAfter(…)`: the delay in milliseconds. */
  readonly requeueAfterMs?: number;
  /** Every call of `ctx.kube`, in order, including failed ones and those made by `retryOnConflict`. */
  readonly calls: readonly RecordedCall[];
  /** The objects after the run. */
  readonly objects: readonly UnknownObject[];
  /** The entries of `ctx.state` after the run: those before it, if the handler failed. */
  readonly state: Readonly<Record<string, unknown>>;
  readonly logs: readonly { level: string; message: string; fields: Record<string, unknown> }[];
  readonly metrics: readonly { name: string; value: number; labels: Record<string, string> }[];
  /** The Kubernetes Events it emitted. */
  readonly events: readonly (Omit<EmitArguments, "object"> & { readonly object: KubeObject })[];
}

/** An event of which a test passes only the relevant fields. */
export type TestEvent<T> =
  T extends Triggers<infer ByName>
    ? { [Name in keyof ByName & string]: AnyGiven<ByName[Name]> & Fired<Name, keyof ByName> }[keyof ByName & string]
    : AnyGiven<T>;

/** The event's trigger, which may be left out if the function has no other. */
type Fired<Name, All> = [All] extends [Name] ? { readonly trigger?: Name } : { readonly trigger: Name };

type AnyGiven<T> = [T] extends [Scheduled] ? GivenTime : Given<T>;

type GivenTime = Partial<ScheduledEvent> & { readonly type: "Scheduled" };

type Given<T> = Partial<Omit<WatchEvent<T>, "object" | "oldObject">> & {
  readonly object: Writable<T>;
  readonly oldObject?: Writable<T>;
};

/**
 * Runs a handler once. Never rejects for an error thrown by the handler, which is returned as `error`. Defaults of the event:
 * type Modified, trigger `test`, first attempt. For a Scheduled, `scheduledFor` defaults to the time of `Date`, which a test may
 * set with the fake timers of its runner.
 */
export async function runHandler<T = UnknownObject, C = Context>(
  handler: Handler<T, C>,
  event: TestEvent<T>,
  options: RunOptions = {},
): Promise<Run> {
  return record((ctx, reader) => handler(complete(event, reader), ctx as C), ownOf([event]), options);
}

/** Record of a batch handler's run. */
export interface BatchRun extends Run {
  /** Ids of the events to be retried: those that the handler named, or all if it threw. */
  readonly failed: readonly string[];
}

/**
 * Runs a batch handler once, on these events: as one batch, which is not halved on failure. Defaults are those of `runHandler`,
 * except the id, which is `test-0` for the first.
 */
export async function runBatch<T = UnknownObject, C = Context>(
  handler: BatchHandler<T, C>,
  events: readonly TestEvent<T>[],
  options: RunOptions = {},
): Promise<BatchRun> {
  const given = events.map((event, index) => ({ id: `test-${index}`, ...event }));
  const ids = given.map(({ id }) => id);
  let failed: readonly string[] = ids;
  const call = async (ctx: Context, reader: NumbersReader) => {
    const batch = given.map((event) => complete<T>(event, reader));
    const returned = await handler(batch, ctx as C);
    const { failed: named = [] } = (returned ?? {}) as Partial<BatchResult>;
    const unknown = named.find((id) => !ids.includes(id));
    if (unknown !== undefined) throw new Error(`\`failed\` names an id that no event of the batch has: ${unknown}`);
    failed = named;
    return returned;
  };
  const run = await record(call, ownOf(events), options);
  return { ...run, failed };
}

/** Returns the existing objects that events are about. */
function ownOf<T>(events: readonly TestEvent<T>[]): KubeObject[] {
  return (events as readonly Partial<Given<KubeObject>>[]).flatMap(({ type, object }) =>
    object === undefined || type === "Deleted" ? [] : (object as KubeObject),
  );
}

/** A run of a key of which a test passes only the relevant fields: its object, or if that is gone its key. */
export type TestReconciliation<T> = Partial<Omit<Reconciliation<T>, "object" | "key">> &
  ({ readonly object: Writable<T>; readonly key?: Key } | { readonly object?: undefined; readonly key: Key });

/**
 * Runs a reconciler once. Never rejects for an error that it throws, which is returned as `error`. Defaults of the run: the
 * object's key, one Modified of the trigger `test` as its cause, first attempt.
 */
export async function runReconciler<T = UnknownObject, C = Context>(
  reconciler: Reconciler<T, C>,
  run: TestReconciliation<T>,
  options: RunOptions = {},
): Promise<Run> {
  const object = run.object as KubeObject | undefined;
  const { name = "", namespace } = object?.metadata ?? {};
  const key: Key = run.key ?? (namespace === undefined ? { name } : { namespace, name });
  const causes: readonly Cause[] = [{ type: object ? "Modified" : "Deleted", trigger: "test", ...key }];
  const whole = structuredClone({ causes, attempt: 1, redelivered: false, ...run, key });
  const call = (ctx: Context, reader: NumbersReader) =>
    reconciler({ ...whole, object: readBy(reader, run.object) } as Reconciliation<T>, ctx as C);
  return record(call, object ? [object] : [], options);
}

/**
 * Runs a handler, a batch handler or a reconciler on a fixture, with objects in memory, and returns the differences from its
 * expectation; empty if there are no differences. A fixture is a file of its `events/`, or an event alone. An `event` is passed
 * alone, `events` as one batch, a `run` to a reconciler. `reads`: the manifest's, if it uses `ctx.cache`. `watchfire test` does
 * the same in the sandbox, where the manifest's permissions and egress apply.
 */
export async function runFixture(
  handler: Handler<never, never> | BatchHandler<never, never> | Reconciler<never, never>,
  file: Fixture | object,
  { reads = [] }: Pick<RunOptions, "reads"> = {},
): Promise<Difference[]> {
  const { event, events, run: key, objects = [], env = {}, state, responses = {}, expect } = fixtureOf(file);
  const calls: FixtureCall[] = [];
  const fetch = async (url: string): Promise<FetchResponse> => {
    const { status = 200, body = "" } = responses[url] ?? {};
    return new Responses.Response(body, { status });
  };
  const options: Heard = {
    objects,
    env,
    ...(state && { state }),
    reads,
    fetch,
    hear: (call) => calls.push(structuredClone(call)),
  };
  let run: Run & Partial<Pick<BatchRun, "failed">>;
  if (key) {
    run = await runReconciler(handler as Reconciler, key as TestReconciliation<UnknownObject>, options);
  } else if (events) {
    run = await runBatch(handler as BatchHandler, events as readonly TestEvent<UnknownObject>[], options);
  } else {
    const given = event as TestEvent<UnknownObject>;
    run = await record(
      (ctx, reader) => (handler as Handler<UnknownObject>)(complete(given, reader), ctx),
      ownOf([given]),
      options,
    );
  }
  const { error, requeueAfterMs, retryAfterMs, failed } = run;
  // A batch may succeed and still name failed events, which are retried.
  const isNamed = run.outcome === "ok" && failed !== undefined && failed.length > 0;
  const outcome = isNamed ? "failed" : run.outcome;
  const said = isNamed
    ? { error: `the batch names as failed: ${failed.join(", ")}` }
    : error === undefined
      ? {}
      : { error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  return differencesOf(expect, { outcome, ...said, requeueAfterMs, retryAfterMs, failed, calls, state: run.state });
}

/** Options of a run whose calls are reported, as in the runtime. */
interface Heard extends RunOptions {
  readonly hear?: (call: FixtureCall) => void;
}

/** Globals of test environments; this package has no platform's types. */
const Responses = globalThis as unknown as { Response: new (body: string, init: { status: number }) => FetchResponse };

/** Calls a user's function with a context, and records its calls. `own`: the objects that it is about. */
async function record(
  call: (ctx: Context, reader: NumbersReader) => unknown,
  own: readonly KubeObject[],
  options: Heard,
): Promise<Run> {
  const reader: NumbersReader = { numbers: undefined };
  const calls: RecordedCall[] = [];
  const logs: Run["logs"][number][] = [];
  const metrics: Run["metrics"][number][] = [];
  const events: Run["events"][number][] = [];
  const { objects = [], env = {}, signal = new AbortController().signal, hear = () => {} } = options;
  const there = [...objects];
  for (const each of own) if (isNew(each, there)) there.push(each);
  const cluster = new MemoryCluster(there);
  const state = new MemoryState(options.state);
  const carry: Call = async (operation, args) => {
    const written = writtenBy(reader, args, operation);
    hear({ call: operation, ...written });
    if (isStateOperation(operation)) return readBy(reader, state.call(operation, written as never) as never);
    return readBy(reader, await cluster.call(operation, written));
  };
  const memory = createKube({ call: carry, pause: () => Promise.resolve() });
  const log =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void logs.push({ level, message, fields });
  const ctx: Context = {
    kube: recorded(Object.assign(memory, options.kube), calls),
    cache: heard(memoryCache(cluster, options.reads ?? []), reader, hear),
    state: createState(carry),
    log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    env: Object.freeze({ ...env }),
    fetch: async (url, init) => {
      const { method = "GET", body } = (init ?? {}) as { method?: string; body?: unknown };
      hear({ call: "fetch", url: String(url), method, ...(typeof body === "string" && { body }) });
      if (!options.fetch) throw new Error(`the test gives no fetch, and the handler fetches ${url}`);
      return options.fetch(String(url), init);
    },
    signal,
    metrics: {
      increment: (name, by = 1, labels = {}) => void metrics.push({ name, value: by, labels }),
      observe: (name, value, labels = {}) => void metrics.push({ name, value, labels }),
    },
    events: {
      emit: async (object, { type, reason, message }) => {
        hear({
          call: "events.emit",
          object: { kind: object.kind, name: object.metadata?.name },
          type,
          reason,
          message,
        });
        events.push({ object, type, reason, message });
      },
    },
  };
  const done = (outcome: Run["outcome"], more: Pick<Run, "error" | "retryAfterMs" | "requeueAfterMs"> = {}): Run => ({
    outcome,
    ...more,
    calls,
    objects: cluster.objects,
    state: state.after(outcome === "ok"),
    logs,
    metrics,
    events,
  });
  try {
    const returned = await call(ctx, reader);
    return done("ok", returned instanceof RequeueAfter ? { requeueAfterMs: returned.delayMs } : {});
  } catch (error) {
    if (error instanceof PermanentError) return done("permanent", { error });
    return done("failed", error instanceof RetryAfter ? { error, retryAfterMs: error.delayMs } : { error });
  }
}

/** Reports each access to the cache, and returns the values as this reader reads them. */
function heard(cache: Cache, reader: NumbersReader, hear: (call: FixtureCall) => void): Cache {
  const { get, list, age } = cache as unknown as Record<keyof Cache, (arg: object) => never>;
  return {
    get: (ref: Ref) => {
      hear({ call: "cache.get", ref });
      return readBy(reader, get(ref));
    },
    list: (query: CacheQuery) => {
      hear({ call: "cache.list", ...query });
      return readBy(reader, list(query));
    },
    age: (kind: { apiVersion: string; kind: string }) => {
      hear({ call: "cache.age", ...kind });
      return age(kind);
    },
  };
}

function complete<T>(event: TestEvent<T>, reader: NumbersReader): EventOf<T> {
  const defaults = { id: "test", trigger: "test", type: "Modified", attempt: 1, redelivered: false } as const;
  if ((event as GivenTime).type === "Scheduled") {
    return structuredClone({ ...defaults, scheduledFor: new Date().toISOString(), ...event }) as unknown as EventOf<T>;
  }
  const { resourceVersion = "1" } = (event as Given<KubeObject>).object.metadata ?? {};
  // A test passes only the relevant fields of an object; those that the API server would add may be missing.
  const { object, oldObject, ...more } = event as Given<KubeObject>;
  const given = { object: readBy(reader, object), ...(oldObject && { oldObject: readBy(reader, oldObject) }) };
  return { ...structuredClone({ ...defaults, resourceVersion, ...more }), ...given } as EventOf<T>;
}

/** Whether an object has enough fields to be stored, and is not stored yet. */
function isNew(object: KubeObject, objects: readonly KubeObject[]): boolean {
  const same = ({ kind, metadata }: KubeObject) =>
    kind === object.kind &&
    metadata?.name === object.metadata?.name &&
    metadata?.namespace === object.metadata?.namespace;
  return Boolean(object.apiVersion && object.kind && object.metadata?.name) && !objects.some(same);
}

/**
 * Records each call before it is made. It wraps the object in place, so that calls made by `retryOnConflict` are recorded as
 * well.
 */
function recorded(kube: Kube, calls: RecordedCall[]): Kube {
  for (const [name, method] of Object.entries(kube)) {
    const noted = (...args: unknown[]) => {
      const plain = structuredClone(args.filter((arg) => typeof arg !== "function"));
      calls.push({ method: name as keyof Kube, arguments: plain });
      return method(...args);
    };
    Object.assign(kube, { [name]: noted });
  }
  return kube;
}
