import type { ResourceVersion } from "../../base/resource-version.ts";
import type { Representation, SourceSpec } from "./source-spec.ts";

/** Where a source stands: the worst of what its streams, its lister and the search for its kind say. Each with the way out of it. */
export type SourceState =
  /** Discovery is asked for path, scope and verbs; then it lists or watches. */
  | "discovering"
  /** A list is being read for those who need one; its end leads to watching, its failure to backoff with nothing diffed. */
  | "listing"
  /** Connected, or about to be again after an ordinary end. */
  | "watching"
  /** Something failed; it tries again where it was, ever less often, and never gives up. */
  | "backoff"
  /**
   * List or watch is not allowed. It is tried again after 1 s, then ever later up to 30 to 60 s, and nothing is taken
   * for deleted.
   */
  | "forbidden"
  /** The kind is not served; discovery is asked every few seconds. */
  | "missing"
  /** Watching cannot work as things are (an oversize object, a kind without watch); tried again every 5 minutes. */
  | "degraded"
  /** Nobody listens any more. */
  | "stopped";

/** One source, for the status page. */
export interface SourceStatus {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** `metadata` where nothing else of its objects is read. */
  readonly representation?: Representation | undefined;
  readonly state: SourceState;
  /** A short name for why it is in that state, as the log has it: `not_served`, `oversize`; absent where nothing is wrong. */
  readonly cause?: string | undefined;
  /** The same in words. */
  readonly message?: string | undefined;
  /** Up to where everything was received. */
  readonly resourceVersion?: ResourceVersion | undefined;
  readonly lastByteAgeMs?: number | undefined;
  readonly lastBookmarkAgeMs?: number | undefined;
  readonly subscribers: number;
  /** So many namespaces, whose changes nobody wants, the server was asked to leave out; absent where none. */
  readonly leftOut?: number | undefined;
  /** Since when it is not connected; absent while it is, and before it first was. */
  readonly awayMs?: number | undefined;
  readonly reconnects: number;
  readonly lastError?: { readonly cause: string; readonly message: string; readonly ageMs: number } | undefined;
}

/** One change of a source's state; one structured log line. */
export interface StateChange {
  readonly from: SourceState;
  readonly to: SourceState;
  readonly cause?: string | undefined;
  readonly message?: string | undefined;
  readonly resourceVersion?: ResourceVersion | undefined;
  /** Failures in a row. */
  readonly attempt: number;
  readonly delayMs?: number | undefined;
}

/** What the rooms of logs and metrics hear of the sources. Calls must return at once and not throw. */
export interface WatchObserver {
  stateChanged(spec: SourceSpec, change: StateChange): void;
  /** `watch_reconnects_total{cause}`: a connection ended and another will be made. */
  reconnected(spec: SourceSpec, cause: string): void;
  /** `watch_gone_total`: the history from where we were is gone, so the source lists again. */
  gone(spec: SourceSpec): void;
  /** `relist_seconds`: a complete list was read. */
  listed(spec: SourceSpec, items: number, durationMs: number): void;
  /** `watch_events_total{type}`: a live change was handed out; `bytes` is its body's length. */
  received(spec: SourceSpec, type: "Added" | "Modified" | "Deleted" | "Bookmark", bytes: number): void;
  /** `watch_stale_total`: an event or bookmark with an older resourceVersion than one before it. */
  stale(spec: SourceSpec): void;
  /** `watch_poison_lines_total`: an event that the protocol does not allow. */
  poisoned(spec: SourceSpec, message: string): void;
}

/** Hears nothing. */
export const silentObserver: WatchObserver = {
  stateChanged() {},
  reconnected() {},
  gone() {},
  listed() {},
  received() {},
  stale() {},
  poisoned() {},
};
