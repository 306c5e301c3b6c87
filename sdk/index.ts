/** What a Watchfire handler imports: types, `defineHandler`, errors, and tools for one object. No weight beyond what it uses. */
import type { Cache } from "./cache.ts";
import type { Stored } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject, UnknownObject } from "./object.ts";
import type { Reconciliation } from "./reconciliation.ts";

export type * from "./cache.ts";
export { type Condition, type NewCondition, setCondition } from "./condition.ts";
export { createOrUpdate, type Kept } from "./create-or-update.ts";
export { type Duration, parseDuration } from "./duration.ts";
export {
  AlreadyExistsError,
  ConflictError,
  FetchError,
  ForbiddenError,
  InvalidError,
  KubeError,
  NotFoundError,
  PermanentError,
  RetryAfter,
  TimeoutError,
  TooManyRequestsError,
} from "./errors.ts";
export { ensureFinalizer, removeFinalizer } from "./finalizer.ts";
export type * from "./kinds.ts";
export type * from "./kube.ts";
export type * from "./object.ts";
export { controllerOf, ownerReference } from "./owner.ts";
export { getOrUndefined, listAll } from "./reading.ts";
export type { Cause, Key, Reconciliation } from "./reconciliation.ts";
export { type RequeueAfter, requeueAfter } from "./requeue.ts";
export { wholeNumber } from "./whole-number.ts";

/** Why an event is synthetic, or why a Deleted is no deletion. `backlog`: it stands for older changes of its object that waited. */
export type Reason = "relist" | "selected" | "unselected" | "rv-rewind" | "crd-removed" | "edited" | "backlog";

/** One change of an object that the trigger `Name` selects. */
export interface WatchEvent<T = UnknownObject, Name extends string = string> {
  /** The same change has the same id in every delivery: an idempotency key. */
  readonly id: string;
  /** The name of the trigger that fired. */
  readonly trigger: Name;
  readonly type: "Added" | "Modified" | "Deleted";
  /** The object after the change; of a Deleted, the last state known. Raw JSON: timestamps are text. */
  readonly object: Stored<T>;
  /** The object before the change, where it is known. */
  readonly oldObject?: Stored<T>;
  /** The object existed when the function was first deployed. */
  readonly initial?: boolean;
  /** Found by comparing with a list, or standing for changes that waited: changes in between were merged into one. */
  readonly synthetic?: boolean;
  /** Why it is synthetic, or why a Deleted is no deletion. */
  readonly reason?: Reason;
  /** The stretch of history, in resourceVersions, that is not told before this event. */
  readonly gap?: { readonly from: string | null; readonly to: string };
  /** Of a Deleted that happened unseen: `object` is the last state known, which may not be the final one. */
  readonly finalStateUnknown?: boolean;
  /** Counts from 1. */
  readonly attempt: number;
  /** An earlier delivery of this id may have run, wholly or in part. */
  readonly redelivered: boolean;
  /** The object's own resourceVersion; of a watched Deleted, the deletion's. */
  readonly resourceVersion: string;
}

/** A time of a trigger's `schedule` has come. There is no object. */
export interface ScheduledEvent<Name extends string = string> {
  /** The same time of the same trigger has the same id in every delivery: an idempotency key. */
  readonly id: string;
  /** The name of the trigger that fired. */
  readonly trigger: Name;
  readonly type: "Scheduled";
  /** The time that has come, by the schedule; ISO 8601 in UTC. The run itself may begin later. */
  readonly scheduledFor: string;
  /** The run comes late, or stands for times that passed without a run: the runtime was down, or the run before was not done. */
  readonly missed?: boolean;
  /** Counts from 1. */
  readonly attempt: number;
  /** An earlier delivery of this id may have run, wholly or in part. */
  readonly redelivered: boolean;
  readonly object?: undefined;
}

declare const scheduled: unique symbol;

/** Stands for a trigger with a `schedule`: `defineHandler<Scheduled>(…)`, or `Triggers<{ nightly: Scheduled; pods: V1Pod }>`. */
export interface Scheduled {
  readonly [scheduled]: true;
}

/** Lines for people. The fields are nested under `fields`, so that none can pose as the runtime's own. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * Figures of the function's own, with the label `function`; its names are its own, whatever other functions count under them.
 * A function may make 200 series; one name is used with the same labels, of at most 512 characters together. What breaks this
 * is not counted, and said so in the function's log.
 */
export interface Metrics {
  /** Adds `by` (default 1, never negative) to the counter `watchfire_user_<name>`, whose name ends in `_total`: added if it does not. */
  increment(name: string, by?: number, labels?: Record<string, string>): void;
  /** Adds one value to the histogram `watchfire_user_<name>`; no name of one ends in `_total`, `_bucket`, `_count` or `_sum`. */
  observe(name: string, value: number, labels?: Record<string, string>): void;
}

/** Kubernetes Events, as `kubectl get events` and `kubectl describe` show them. */
export interface Events {
  /**
   * Writes an Event about an object. About the triggering object it needs no grant; about any other, `create` on `events`
   * in its namespace. Repeats are counted on one Event. `reason` is a word in CamelCase, at most 128 characters; `message` is cut at 1024 bytes.
   */
  emit(object: KubeObject, event: { type: "Normal" | "Warning"; reason: string; message: string }): Promise<void>;
}

/** What `ctx.fetch` takes beside the URL: the standard's fields that make sense without a browser. */
export interface FetchInit {
  method?: string;
  headers?: Record<string, string> | [string, string][];
  /** At most 1 MiB. */
  body?: string | Uint8Array | ArrayBuffer;
  /** Default `follow`: at most 5, each checked against `egress`. */
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal;
}

/** Headers of a response, read as the standard's `Headers` are. A name may be written in any case. */
export interface FetchHeaders extends Iterable<[name: string, value: string]> {
  /** All values of one name in one text, with ", " between them; null where there is none. */
  get(name: string): string | null;
  has(name: string): boolean;
  /** Each `Set-Cookie` alone. */
  getSetCookie(): string[];
  /** Calls back for each name in order; for `set-cookie`, once for each value. */
  forEach(callback: (value: string, name: string, headers: FetchHeaders) => void): void;
  entries(): Iterator<[name: string, value: string]> & Iterable<[name: string, value: string]>;
  keys(): Iterator<string> & Iterable<string>;
  values(): Iterator<string> & Iterable<string>;
}

/** A response, already received whole (at most 5 MiB). */
export interface FetchResponse {
  readonly status: number;
  readonly statusText: string;
  /** True for 200 to 299. */
  readonly ok: boolean;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: FetchHeaders;
  text(): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: as in the standard, the caller knows the shape
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** What a handler works with. */
export interface Context {
  /** The cluster, as far as the manifest's `permissions` grant it. */
  readonly kube: Kube;
  /** The objects of the manifest's `reads`, from memory. */
  readonly cache: Cache;
  readonly log: Log;
  /** The manifest's `env`, references resolved. */
  readonly env: Readonly<Record<string, string>>;
  /** HTTP to the manifest's `egress` hosts alone; anything else is a FetchError with `refused`. */
  readonly fetch: (url: string | URL, init?: FetchInit) => Promise<FetchResponse>;
  /** Aborts when the attempt ends: at its timeout, or when the runtime drains. */
  readonly signal: AbortSignal;
  readonly metrics: Metrics;
  readonly events: Events;
}

declare const triggers: unique symbol;

/**
 * The types of a function's several triggers, by their names: `defineHandler<Triggers<{ shops: Shop; pods: V1Pod }>>(…)`.
 * `event.trigger === "pods"` then narrows `event.object`.
 */
export interface Triggers<ByName extends object> {
  readonly [triggers]: ByName;
}

/** The event of one trigger, or the union of those of several. */
export type EventOf<T> =
  T extends Triggers<infer ByName>
    ? { [Name in keyof ByName & string]: OneEvent<ByName[Name], Name> }[keyof ByName & string]
    : OneEvent<T>;

// Not one by one where T is a union: an event then has one object of several types.
type OneEvent<T, Name extends string = string> = [T] extends [Scheduled] ? ScheduledEvent<Name> : WatchEvent<T, Name>;

/**
 * Handles one event. Returning means done; throwing means retry with backoff; PermanentError and RetryAfter say otherwise.
 * Of what it returns, only `requeueAfter("30s")` counts: the event comes again then.
 */
export type Handler<T = UnknownObject> = (event: EventOf<T>, ctx: Context) => unknown;

/** What a handler of batches may return: the ids of events that failed, to be tried again alone. Nothing: all went well. */
export interface BatchResult {
  readonly failed: readonly string[];
}

/**
 * Handles several events at once, each of another object, oldest first. Returning means that all are done, but for those it
 * names in `failed`. Throwing means that the batch is halved until what fails is one event; `RetryAfter` that all wait.
 */
export type BatchHandler<T = UnknownObject> = (
  events: readonly EventOf<T>[],
  ctx: Context,
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing, and one that awaits last, are both usual
) => BatchResult | void | Promise<BatchResult | void>;

/** Gives the handler back as it is, for its types. The manifest then has `delivery.batch`. */
export function defineBatchHandler<T = UnknownObject>(handler: BatchHandler<T>): BatchHandler<T> {
  return toldEvents(handler);
}

/**
 * Gives the handler back as it is: it is there for its types. Export the result as the module's default. With
 * `delivery.mode: Reconcile` in the manifest the function is refused.
 */
export function defineHandler<T = UnknownObject>(handler: Handler<T>): Handler<T> {
  return toldEvents(handler);
}

function toldEvents<T extends object>(handler: T): T {
  // By this mark of its handler the runtime refuses a function where the manifest's mode is Reconcile.
  Object.defineProperty(handler, Symbol.for("@watchfire/sdk/handler"), { value: true });
  return handler;
}

/**
 * Brings one key to its desired state. Returning means done, or with `requeueAfter("30s")` done for now; throwing means
 * again with backoff; PermanentError and RetryAfter say otherwise. What else it returns is ignored.
 */
export type Reconciler<T = UnknownObject> = (run: Reconciliation<T>, ctx: Context) => unknown;

/**
 * Gives the reconciler back as it is: it is there for its types. Export the result as the module's default, with
 * `delivery.mode: Reconcile` in the manifest: in another mode the function is refused. `T` is the kind of the trigger
 * without `key`.
 */
export function defineReconciler<T = UnknownObject>(reconciler: Reconciler<T>): Reconciler<T> {
  // By this mark of its handler the runtime refuses a function where the manifest is of another mode.
  Object.defineProperty(reconciler, Symbol.for("@watchfire/sdk/reconciler"), { value: true });
  return reconciler;
}
