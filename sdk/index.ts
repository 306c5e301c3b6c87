/**
 * API for Watchfire handlers: types, `defineHandler`, errors, and tools for one object. A bundle contains only the parts it uses.
 */
import type { Cache } from "./cache.ts";
import type { Stored } from "./kinds.ts";
import type { Kube } from "./kube.ts";
import type { KubeObject, UnknownObject } from "./object.ts";
import type { Reconciliation } from "./reconciliation.ts";
import type { State } from "./state.ts";

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
  NotServedError,
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
export type { State } from "./state.ts";
export { wholeNumber } from "./whole-number.ts";

/**
 * Why an event is synthetic, or why a Deleted is not a deletion. `backlog`: it stands for older changes of its object that
 * waited.
 */
export type Reason = "relist" | "selected" | "unselected" | "rv-rewind" | "crd-removed" | "edited" | "backlog";

/** One change of an object that the trigger `Name` selects. */
export interface WatchEvent<T = UnknownObject, Name extends string = string> {
  /** Idempotency key: the same change has the same id in every delivery. */
  readonly id: string;
  /** Name of the trigger that fired. */
  readonly trigger: Name;
  readonly type: "Added" | "Modified" | "Deleted";
  /** The object after the change; for a Deleted, the last known state. Raw JSON: timestamps are text. */
  readonly object: Stored<T>;
  /** The object before the change, if known. */
  readonly oldObject?: Stored<T>;
  /** True if the object existed when the function was first deployed. */
  readonly initial?: boolean;
  /**
   * True if the event was found by comparison with a list, or stands for changes that waited: intermediate changes were merged.
   */
  readonly synthetic?: boolean;
  /** Why the event is synthetic, or why a Deleted is not a deletion. */
  readonly reason?: Reason;
  /** Range of resourceVersions before this event whose changes are not delivered. */
  readonly gap?: { readonly from: string | null; readonly to: string };
  /** True for a Deleted that was not observed: `object` is the last known state, which may not be the final one. */
  readonly finalStateUnknown?: boolean;
  /** Counts from 1. */
  readonly attempt: number;
  /** True if an earlier delivery of this id may have run, wholly or in part. */
  readonly redelivered: boolean;
  /** The object's own resourceVersion; for an observed Deleted, the deletion's. */
  readonly resourceVersion: string;
}

/** A scheduled time of a trigger has come. There is no object. */
export interface ScheduledEvent<Name extends string = string> {
  /** Idempotency key: the same time of the same trigger has the same id in every delivery. */
  readonly id: string;
  /** Name of the trigger that fired. */
  readonly trigger: Name;
  readonly type: "Scheduled";
  /** The scheduled time; ISO 8601 in UTC. The run itself may begin later. */
  readonly scheduledFor: string;
  /**
   * True if the run is late, or stands for times that passed without a run: the runtime was down, or the previous run was not
   * done.
   */
  readonly missed?: boolean;
  /** Counts from 1. */
  readonly attempt: number;
  /** True if an earlier delivery of this id may have run, wholly or in part. */
  readonly redelivered: boolean;
  readonly object?: undefined;
}

declare const scheduled: unique symbol;

/**
 * Type argument for a trigger with a `schedule`: `defineHandler<Scheduled>(…)`, or `Triggers<{ nightly: Scheduled; pods: V1Pod
 * }>`.
 */
export interface Scheduled {
  readonly [scheduled]: true;
}

/** Log lines for people. The fields are nested under `fields`, so that they cannot be mistaken for the runtime's own. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * The function's own metrics, with the label `function`; names are per function, whatever other functions use. A function may
 * create 200 series; a name must always have the same labels, of at most 512 characters together. A value that breaks these
 * limits is dropped, with a warning in the function's log.
 */
export interface Metrics {
  /**
   * Adds `by` (default 1, never negative) to the counter `watchfire_user_<name>`. `_total` is appended to the name if it is
   * missing.
   */
  increment(name: string, by?: number, labels?: Record<string, string>): void;
  /**
   * Adds one value to the histogram `watchfire_user_<name>`, whose name must not end in `_total`, `_bucket`, `_count` or `_sum`.
   */
  observe(name: string, value: number, labels?: Record<string, string>): void;
}

/** Kubernetes Events, as `kubectl get events` and `kubectl describe` show them. */
export interface Events {
  /**
   * Writes an Event about an object. About the triggering object it needs no permission; about any other, `create` on `events` in
   * its namespace. Repeats are counted on one Event. `reason` is a word in CamelCase, at most 128 characters; `message` is
   * truncated to 1024 bytes.
   */
  emit(object: KubeObject, event: { type: "Normal" | "Warning"; reason: string; message: string }): Promise<void>;
}

/** Options of `ctx.fetch`: the standard's fields that make sense without a browser. */
export interface FetchInit {
  method?: string;
  headers?: Record<string, string> | [string, string][];
  /** At most 1 MiB. */
  body?: string | Uint8Array | ArrayBuffer;
  /** Default `follow`: at most 5 redirects, each checked against `egress`. */
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal;
}

/** Headers of a response, as in the standard's `Headers`. Names are case-insensitive. */
export interface FetchHeaders extends Iterable<[name: string, value: string]> {
  /** Returns all values of one name, joined by ", "; null if it is absent. */
  get(name: string): string | null;
  has(name: string): boolean;
  /** Returns each `Set-Cookie` separately. */
  getSetCookie(): string[];
  /** Calls `callback` for each name in order; for `set-cookie`, once per value. */
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

/**
 * Context of a handler. `Env`: the manifest's `env`; `Reads`: the type of `cache`. `watchfire types` writes both for a function.
 */
export interface Context<Env = Readonly<Record<string, string>>, Reads = Cache> {
  /** The cluster, as far as the manifest's `permissions` allow. */
  readonly kube: Kube;
  /** The objects of the manifest's `reads`, from memory. */
  readonly cache: Reads;
  /** Entries that the function keeps across events and restarts. */
  readonly state: State;
  readonly log: Log;
  /** The manifest's `env`, with references resolved. */
  readonly env: Env;
  /** HTTP requests to the hosts in the manifest's `egress`; any other host causes a FetchError with `refused`. */
  readonly fetch: (url: string | URL, init?: FetchInit) => Promise<FetchResponse>;
  /** Aborts when the attempt ends: at its timeout, or when the runtime drains. */
  readonly signal: AbortSignal;
  readonly metrics: Metrics;
  readonly events: Events;
}

declare const triggers: unique symbol;

/**
 * Types of a function's triggers, by name: `defineHandler<Triggers<{ shops: Shop; pods: V1Pod }>>(…)`. `event.trigger === "pods"`
 * then narrows `event.object`.
 */
export interface Triggers<ByName extends object> {
  readonly [triggers]: ByName;
}

/** The event of one trigger, or the union of those of several. */
export type EventOf<T> =
  T extends Triggers<infer ByName>
    ? { [Name in keyof ByName & string]: OneEvent<ByName[Name], Name> }[keyof ByName & string]
    : OneEvent<T>;

// Not distributive: if T is a union, one event has an object of several possible types.
type OneEvent<T, Name extends string = string> = [T] extends [Scheduled] ? ScheduledEvent<Name> : WatchEvent<T, Name>;

/**
 * Handles one event. Returning means success; throwing means retry with backoff, unless it is a PermanentError or RetryAfter. The
 * only meaningful return value is `requeueAfter("30s")`: the event is then delivered again.
 */
export interface Handler<T = UnknownObject, C = Context> {
  // biome-ignore lint/style/useShorthandFunctionType: -- inference needs the arguments, which an alias of this type would lose
  (event: EventOf<T>, ctx: C): unknown;
}

/** Optional result of a batch handler: the ids of failed events, which are retried alone. Without it, all succeeded. */
export interface BatchResult {
  readonly failed: readonly string[];
}

/**
 * Handles several events at once, each of another object, oldest first. Returning means that all succeeded except those in
 * `failed`. Throwing means that the batch is halved until the failing event is alone; `RetryAfter` makes all of them wait.
 */
export interface BatchHandler<T = UnknownObject, C = Context> {
  // biome-ignore lint/style/useShorthandFunctionType: -- inference needs the arguments, which an alias of this type would lose
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing, and one that awaits last, are both usual
  (events: readonly EventOf<T>[], ctx: C): BatchResult | void | Promise<BatchResult | void>;
}

/** Returns the handler unchanged, with its types. Requires `delivery.batch` in the manifest. */
export function defineBatchHandler<T = UnknownObject, C = Context>(handler: BatchHandler<T, C>): BatchHandler<T, C> {
  return toldEvents(handler);
}

/**
 * Returns the handler unchanged, with its types. Export the result as the module's default. A function with `delivery.mode:
 * Reconcile` in its manifest is refused.
 */
export function defineHandler<T = UnknownObject, C = Context>(handler: Handler<T, C>): Handler<T, C> {
  return toldEvents(handler);
}

function toldEvents<T extends object>(handler: T): T {
  // Mark by which the runtime refuses this handler if the manifest's mode is Reconcile.
  Object.defineProperty(handler, Symbol.for("@watchfire/sdk/handler"), { value: true });
  return handler;
}

/**
 * Reconciles one key. Returning means success, or with `requeueAfter("30s")` success for now; throwing means retry with backoff,
 * unless it is a PermanentError or RetryAfter. Other return values are ignored.
 */
export interface Reconciler<T = UnknownObject, C = Context> {
  // biome-ignore lint/style/useShorthandFunctionType: -- inference needs the arguments, which an alias of this type would lose
  (run: Reconciliation<T>, ctx: C): unknown;
}

/**
 * Returns the reconciler unchanged, with its types. Export the result as the module's default. Requires `delivery.mode:
 * Reconcile` in the manifest; in another mode the function is refused. `T` is the kind of the trigger without `key`.
 */
export function defineReconciler<T = UnknownObject, C = Context>(reconciler: Reconciler<T, C>): Reconciler<T, C> {
  // Mark by which the runtime refuses this handler if the manifest has another mode.
  Object.defineProperty(reconciler, Symbol.for("@watchfire/sdk/reconciler"), { value: true });
  return reconciler;
}
