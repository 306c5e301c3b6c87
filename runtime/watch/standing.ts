import type { Clock } from "../clock.ts";
import type { ResourceVersion } from "../resource-version.ts";
import type { SourceState, SourceStatus, StateChange, WatchObserver } from "./observer.ts";
import type { SourceSpec } from "./source-spec.ts";

/** Why a state was entered. */
export type Reason = Pick<StateChange, "cause" | "message" | "delayMs">;

/** A source's state and what is told of it. */
export class Standing {
  private readonly spec: SourceSpec;
  private readonly clock: Clock;
  private readonly observer: WatchObserver;
  private current: SourceState = "discovering";
  private reason: Reason = {};
  private reconnects = 0;
  /** When it left `watching`, to which it has not come back. */
  private leftAt: number | undefined;
  private lastError: { cause: string; message: string; at: number } | undefined;
  /** Failures in a row, as of the last change. */
  attempt = 0;
  /** Up to where everything was received. */
  received: ResourceVersion | undefined;
  bookmarkAt: number | undefined;

  constructor(spec: SourceSpec, clock: Clock, observer: WatchObserver) {
    this.spec = spec;
    this.clock = clock;
    this.observer = observer;
  }

  get state(): SourceState {
    return this.current;
  }

  /** Changes the state, and says so once: the same state for the same reason is no change. */
  enter(to: SourceState, reason: Reason = {}): void {
    const from = this.current;
    const same = from === to && reason.cause === this.reason.cause && reason.message === this.reason.message;
    this.current = to;
    this.reason = reason;
    if (to === "watching") this.leftAt = undefined;
    else if (from === "watching") this.leftAt = this.clock.monotonic();
    if (same) return;
    const { attempt, received: resourceVersion } = this;
    this.observer.stateChanged(this.spec, { from, to, ...reason, resourceVersion, attempt });
  }

  reconnected(cause: string): void {
    this.reconnects++;
    this.observer.reconnected(this.spec, cause);
  }

  failed(cause: string, message: string): void {
    this.lastError = { cause, message, at: this.clock.monotonic() };
  }

  status(lastByteAt: number | undefined, subscribers: number): SourceStatus {
    const { apiVersion, kind, namespace, labelSelector, fieldSelector } = this.spec;
    const now = this.clock.monotonic();
    const age = (at: number | undefined) => (at === undefined ? undefined : Math.round(now - at));
    return {
      apiVersion,
      kind,
      namespace,
      labelSelector,
      fieldSelector,
      state: this.current,
      cause: this.reason.cause,
      message: this.reason.message,
      resourceVersion: this.received,
      lastByteAgeMs: age(lastByteAt),
      lastBookmarkAgeMs: age(this.bookmarkAt),
      subscribers,
      awayMs: age(this.leftAt),
      reconnects: this.reconnects,
      lastError: this.lastError && {
        cause: this.lastError.cause,
        message: this.lastError.message,
        ageMs: Math.round(now - this.lastError.at),
      },
    };
  }
}
