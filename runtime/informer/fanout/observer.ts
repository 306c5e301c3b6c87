import type { ResourceVersion } from "../../base/resource-version.ts";
import type { Representation, SourceSpec } from "./source-spec.ts";

/**
 * State of a source: the worst state of its streams, its lister and the search for its kind. Each value says how the state is
 * left.
 */
export type SourceState =
  /** Discovery is asked for path, scope and verbs; then the source lists or watches. */
  | "discovering"
  /**
   * A list is being read for the subscribers that need one. Success leads to `watching`, failure to `backoff` without any diff.
   */
  | "listing"
  /** Connected, or about to reconnect after an ordinary end. */
  | "watching"
  /** A request failed. The source retries from the same position with growing delays, and never gives up. */
  | "backoff"
  /**
   * List or watch is forbidden. The source retries after 1 s, then with growing delays up to 30 to 60 s, and takes no object for
   * deleted.
   */
  | "forbidden"
  /** The kind is not served; discovery is asked again every few seconds. */
  | "missing"
  /** Watching cannot work in the present circumstances (an oversize object, a kind without watch); retried every 5 minutes. */
  | "degraded"
  /** No subscriber is left. */
  | "stopped";

/** Status of one source, for the status page. */
export interface SourceStatus {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** `metadata` if only the metadata of its objects is read. */
  readonly representation?: Representation | undefined;
  readonly state: SourceState;
  /** Short name of the reason for the state, as in the log: `not_served`, `oversize`. Absent if nothing is wrong. */
  readonly cause?: string | undefined;
  /** The reason in words. */
  readonly message?: string | undefined;
  /** The resourceVersion up to which everything was received. */
  readonly resourceVersion?: ResourceVersion | undefined;
  readonly lastByteAgeMs?: number | undefined;
  readonly lastBookmarkAgeMs?: number | undefined;
  /** Milliseconds since the last live change. Absent before the first. */
  readonly lastEventAgeMs?: number | undefined;
  /** Bytes of the live changes so far. */
  readonly receivedBytes?: number | undefined;
  /** The last complete list. Absent if no list was needed. */
  readonly lastList?:
    | {
        readonly ageMs: number;
        readonly items: number;
        readonly tookMs: number;
        /** Why its subscribers needed it, in words. */
        readonly why: string;
      }
    | undefined;
  readonly subscribers: number;
  /** Number of namespaces that the server was asked to leave out, because no subscriber wants their changes; absent if zero. */
  readonly leftOut?: number | undefined;
  /** Milliseconds since the connection was lost; absent while connected and before the first connection. */
  readonly awayMs?: number | undefined;
  readonly reconnects: number;
  readonly lastError?: { readonly cause: string; readonly message: string; readonly ageMs: number } | undefined;
}

/** One change of a source's state; becomes one structured log line. */
export interface StateChange {
  readonly from: SourceState;
  readonly to: SourceState;
  readonly cause?: string | undefined;
  readonly message?: string | undefined;
  readonly resourceVersion?: ResourceVersion | undefined;
  /** Consecutive failures. */
  readonly attempt: number;
  readonly delayMs?: number | undefined;
}

/** Callbacks for logs and metrics about the sources. They must return at once and must not throw. */
export interface WatchObserver {
  stateChanged(spec: SourceSpec, change: StateChange): void;
  /** `watch_reconnects_total{cause}`: a connection ended and another will be opened. */
  reconnected(spec: SourceSpec, cause: string): void;
  /** `watch_gone_total`: the server no longer has the history from the source's position, so the source lists again. */
  gone(spec: SourceSpec): void;
  /** `relist_seconds`: a complete list was read. */
  listed(spec: SourceSpec, items: number, durationMs: number): void;
  /** `watch_events_total{type}`: a live change was delivered; `bytes` is the length of its body. */
  received(spec: SourceSpec, type: "Added" | "Modified" | "Deleted" | "Bookmark", bytes: number): void;
  /** `watch_stale_total`: an event or bookmark had an older resourceVersion than an earlier one. */
  stale(spec: SourceSpec): void;
  /** `watch_poison_lines_total`: an event violated the protocol. */
  poisoned(spec: SourceSpec, message: string): void;
}

/** Observer that ignores every callback. */
export const silentObserver: WatchObserver = {
  stateChanged() {},
  reconnected() {},
  gone() {},
  listed() {},
  received() {},
  stale() {},
  poisoned() {},
};
