import type { Clock } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import type { SourceState, SourceStatus, StateChange, WatchObserver } from "../fanout/observer.ts";
import type { SourceSpec } from "../fanout/source-spec.ts";

/** Why a state was entered. */
type StateReason = Pick<StateChange, "cause" | "message" | "delayMs">;

/** States in ascending order of severity. */
const severity: readonly SourceState[] = [
  "watching",
  "listing",
  "discovering",
  "backoff",
  "missing",
  "forbidden",
  "degraded",
  "stopped",
];

/** Health of one part of a source: a stream, the lister, or the search for the kind. It has no state while it is silent. */
export class HealthReporter {
  private readonly changed: (voice: HealthReporter) => void;
  private current: SourceState | undefined;
  /** Reason for the state. */
  reason: StateReason = {};
  /** Consecutive failures, as of the last change. */
  attempt = 0;

  constructor(changed: (voice: HealthReporter) => void) {
    this.changed = changed;
  }

  /** `undefined` while it is silent. */
  get state(): SourceState | undefined {
    return this.current;
  }

  enter(to: SourceState, reason: StateReason = {}): void {
    this.current = to;
    this.reason = reason;
    this.changed(this);
  }

  silence(): void {
    this.current = undefined;
    this.reason = {};
    this.changed(this);
  }
}

/** A source's state, which is the worst of its parts' states, and the status and notices derived from it. */
export class InformerHealth {
  private readonly spec: SourceSpec;
  private readonly clock: Clock;
  private readonly observer: WatchObserver;
  private readonly voices = new Set<HealthReporter>();
  private current: SourceState = "discovering";
  private reason: StateReason = {};
  private reconnects = 0;
  private wasConnected = false;
  /** When the last stream ended; `undefined` while one is running. */
  private leftAt: number | undefined;
  private lastError: { cause: string; message: string; at: number } | undefined;
  /** The resourceVersion up to which everything was received. */
  received: ResourceVersion | undefined;
  lastByteAt: number | undefined;
  bookmarkAt: number | undefined;
  /** When the last live change was received, in monotonic milliseconds. */
  eventAt: number | undefined;
  /** Bytes of the live changes. */
  receivedBytes = 0;
  /** The last complete list; `at` in monotonic milliseconds. */
  lastList: { readonly at: number; readonly items: number; readonly tookMs: number; readonly why: string } | undefined;

  constructor(spec: SourceSpec, clock: Clock, observer: WatchObserver) {
    this.spec = spec;
    this.clock = clock;
    this.observer = observer;
  }

  /** Adds a reporter for a part of the source. */
  voice(): HealthReporter {
    const voice = new HealthReporter(() => this.changed());
    this.voices.add(voice);
    return voice;
  }

  /** Removes a part's reporter. */
  dismiss(voice: HealthReporter): void {
    this.voices.delete(voice);
    this.changed();
  }

  /** Marks the source as stopped. */
  stop(): void {
    this.voices.clear();
    this.enter("stopped", {}, 0);
  }

  reconnected(cause: string): void {
    this.reconnects++;
    this.observer.reconnected(this.spec, cause);
  }

  failed(cause: string, message: string): void {
    this.lastError = { cause, message, at: this.clock.monotonic() };
  }

  /** Forgets an outage, because the subscribers affected by it have left. */
  forgive(): void {
    this.wasConnected = false;
    this.leftAt = undefined;
  }

  status(subscribers: number): SourceStatus {
    const { apiVersion, kind, namespace, labelSelector, fieldSelector, representation } = this.spec;
    const now = this.clock.monotonic();
    const age = (at: number | undefined) => (at === undefined ? undefined : Math.round(now - at));
    return {
      apiVersion,
      kind,
      namespace,
      labelSelector,
      fieldSelector,
      representation,
      state: this.current,
      cause: this.reason.cause,
      message: this.reason.message,
      resourceVersion: this.received,
      lastByteAgeMs: age(this.lastByteAt),
      lastBookmarkAgeMs: age(this.bookmarkAt),
      lastEventAgeMs: age(this.eventAt),
      receivedBytes: this.receivedBytes,
      lastList: this.lastList && {
        ageMs: Math.round(now - this.lastList.at),
        items: this.lastList.items,
        tookMs: Math.round(this.lastList.tookMs),
        why: this.lastList.why,
      },
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

  private changed(): void {
    let worst: HealthReporter | undefined;
    let connected = false;
    for (const voice of this.voices) {
      if (voice.state === undefined) continue;
      connected ||= voice.state === "watching";
      if (!worst?.state || severity.indexOf(voice.state) > severity.indexOf(worst.state)) worst = voice;
    }
    if (connected) {
      this.wasConnected = true;
      this.leftAt = undefined;
    } else if (this.wasConnected) this.leftAt ??= this.clock.monotonic();
    // While one part has ended and the next has not begun, the state stays.
    if (worst?.state) this.enter(worst.state, worst.reason, worst.attempt);
  }

  /** Reports a change of state or reason; an identical state is not reported again. */
  private enter(to: SourceState, reason: StateReason, attempt: number): void {
    const from = this.current;
    const same = from === to && reason.cause === this.reason.cause && reason.message === this.reason.message;
    this.current = to;
    this.reason = reason;
    if (!same) this.observer.stateChanged(this.spec, { from, to, ...reason, resourceVersion: this.received, attempt });
  }
}
