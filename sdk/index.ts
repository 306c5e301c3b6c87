/** What a Watchfire handler imports: types, `defineHandler` and the errors. No weight beyond the errors it uses. */
import type { Kube, KubeObject, UnknownObject } from "./kube.ts";

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
export type * from "./kube.ts";

/** An object as the API server gives it: what every stored object has is there. */
export type Observed<T> = T & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    /** Absent for cluster-scoped kinds. */
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
};

/** One change of an object that a trigger selects. */
export interface WatchEvent<T = UnknownObject> {
  /** The same change has the same id in every delivery: an idempotency key. */
  readonly id: string;
  /** The name of the trigger that fired. */
  readonly trigger: string;
  readonly type: "Added" | "Modified" | "Deleted";
  /** The object after the change; of a Deleted, the last state known. Raw JSON: timestamps are text. */
  readonly object: Observed<T>;
  /** The object before the change, where it is known. */
  readonly oldObject?: Observed<T>;
  /** The object existed when the function was first deployed. */
  readonly initial?: boolean;
  /** Found by comparing with a list, not received from a watch: changes in between may have been merged into one. */
  readonly synthetic?: boolean;
  /** Why it is synthetic, or why a Deleted is no deletion, such as `relist` or `unselected`. */
  readonly reason?: string;
  /** The stretch of history, in resourceVersions, that could not be seen before this event. */
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

/** A response, already received whole (at most 5 MiB). */
export interface FetchResponse {
  readonly status: number;
  readonly statusText: string;
  /** True for 200 to 299. */
  readonly ok: boolean;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: { get(name: string): string | null; has(name: string): boolean };
  text(): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: as in the standard, the caller knows the shape
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** What a handler works with. */
export interface Context {
  /** The cluster, as far as the manifest's `permissions` grant it. */
  readonly kube: Kube;
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

/**
 * Handles one event. Returning means done; throwing means retry with backoff; PermanentError and RetryAfter say otherwise.
 * What it returns is ignored.
 */
export type Handler<T = UnknownObject> = (event: WatchEvent<T>, ctx: Context) => unknown;

/** Gives the handler back as it is: it is there for its types. Export the result as the module's default. */
export function defineHandler<T = UnknownObject>(handler: Handler<T>): Handler<T> {
  return handler;
}
