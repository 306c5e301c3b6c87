import type { EventType, FunctionManifest } from "../../manifest/function.ts";

/** How an event ended; `retry` is the one after which it has not. */
export type EventOutcome = "ok" | "retry" | "dead_letter" | "filtered" | "dropped";

/** Hears what happens, for metrics. Calls are synchronous, must not throw, and come on the hot path. */
export interface EngineObserver {
  /** A function is loaded, or runs by another manifest from now on. */
  declared?(manifest: FunctionManifest): void;
  /** Every event ends exactly once in an outcome other than `retry`. `count`: of so many alike; default 1. */
  event?(functionName: string, trigger: string, type: EventType, outcome: EventOutcome, count?: number): void;
  /** An attempt's handler begins, `waitedMs` after the event's last byte was received. */
  attempt?(functionName: string, trigger: string, waitedMs: number): void;
  /** An attempt's handler ran for `durationMs`. */
  handled?(functionName: string, trigger: string, durationMs: number): void;
  /** An event was recognised as one that had been received before. */
  stale?(functionName: string, trigger: string): void;
  /** An event is delivered with `redelivered`. */
  flagged?(functionName: string, trigger: string): void;
  /** An event went to disk. */
  spilled?(functionName: string, trigger: string): void;
  /** So many waiting events of an object gave way to a newer one, since it had more than its share of the queue. */
  collapsed?(functionName: string, trigger: string, count: number): void;
  /** A match condition had no value and counted as not holding (`error`), or used up its cost and counted as holding (`limit`). */
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
