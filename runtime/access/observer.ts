/** One call that a guest made, when it has ended. */
export interface CallRecord {
  readonly function: string;
  /** `kube.get`, `events.emit`, `fetch`, …; `unknown` for a name that is none. */
  readonly operation: string;
  /** `ok`; or the class of the error, of a refusal by the runtime `refused`; or `dropped` for an Event above the rate. */
  readonly result: string;
  readonly durationMs: number;
}

/** Told of every call; makes metrics of it. */
export interface AccessObserver {
  called(record: CallRecord): void;
}
