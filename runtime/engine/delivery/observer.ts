import type { EventType, FunctionManifest } from "../../manifest/function.ts";

/** The outcome of an event; after `retry` the event has not ended. */
export type EventOutcome = "ok" | "retry" | "dead_letter" | "filtered" | "dropped";

/** Receives notifications for metrics. Calls are synchronous, on the hot path, and must not throw. */
export interface EngineObserver {
  /** A function was loaded, or runs by another manifest from now on. */
  declared?(manifest: FunctionManifest): void;
  /** An event ended, exactly once in an outcome other than `retry`. `count` is the number of equal events. Default: 1. */
  event?(functionName: string, trigger: string, type: EventType, outcome: EventOutcome, count?: number): void;
  /** An attempt's handler begins, `waitedMs` after the event's last byte was received. */
  attempt?(functionName: string, trigger: string, waitedMs: number): void;
  /** An attempt's handler ran for `durationMs`. */
  handled?(functionName: string, trigger: string, durationMs: number): void;
  /** An event was recognised as one that had been received before. */
  stale?(functionName: string, trigger: string): void;
  /** An event is delivered with `redelivered`. */
  flagged?(functionName: string, trigger: string): void;
  /** An event was written to disk. */
  spilled?(functionName: string, trigger: string): void;
  /** A newer event replaced so many waiting events of its object, which had exceeded its share of the queue. */
  collapsed?(functionName: string, trigger: string, count: number): void;
  /**
   * A match condition had no value and counted as not holding (`error`), or exceeded its cost limit and counted as holding
   * (`limit`).
   */
  conditionError?(functionName: string, trigger: string, condition: string, result: "error" | "limit"): void;
  committed?(durationMs: number, rows: number): void;
  commitFailed?(): void;
}

/** The part of a pino logger that dispatch uses. */
export interface EngineLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  trace?(fields: object, message: string): void;
  isLevelEnabled?(level: string): boolean;
}
