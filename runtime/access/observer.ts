/** A guest's call that has ended. */
export interface CallRecord {
  readonly function: string;
  /** `kube.get`, `events.emit`, `fetch`, …; `unknown` for an invalid name. */
  readonly operation: string;
  /** `ok`; the error's class; `refused` for a refusal by the runtime; `dropped` for an Event above the rate. */
  readonly result: string;
  readonly durationMs: number;
}

/** Observes every call, for metrics. */
export interface AccessObserver {
  called(record: CallRecord): void;
}
