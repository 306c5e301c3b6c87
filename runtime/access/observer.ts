import type { Caller } from "../sandbox/host-calls.ts";

/** A guest's call that has ended. */
export interface CallRecord {
  readonly function: string;
  /** `kube.get`, `events.emit`, `fetch`, …; `unknown` for an invalid name. */
  readonly operation: string;
  /** `ok`; the error's class; `refused` for a refusal by the runtime; `dropped` for an Event above the rate. */
  readonly result: string;
  readonly durationMs: number;
}

/** One call of an attempt, for a person who asks what it called. */
export interface ListedCall {
  /** `kube.get`, `events.emit`, `fetch`, …; `unknown` for an invalid name. */
  readonly operation: string;
  /** The object, the kind with its namespace, or the method and host; empty if the arguments were not read. */
  readonly target: string;
  readonly result: string;
  /** The HTTP status of the answer; `undefined` if no server answered. */
  readonly status: number | undefined;
  /** When it began, in epoch milliseconds. */
  readonly at: number;
  readonly durationMs: number;
  /** Characters of the arguments and of the answer, as JSON. */
  readonly sent: number;
  readonly received: number;
}

/** The calls of one attempt, in the order in which they ended. */
export interface CallList {
  readonly calls: ListedCall[];
  /** How many further calls are not listed. */
  more: number;
}

/** Maximum number of calls of one attempt that are listed. */
export const mostListedCalls = 100;

/** A call's part of a trace. */
export interface CallSpan {
  /** The header by which the callee's spans join the trace. */
  readonly traceparent: string;
  ended(call: ListedCall): void;
}

/** Observes every call, for metrics, traces and the history. */
export interface AccessObserver {
  called(record: CallRecord): void;
  /** Returns where an attempt's calls are listed. Called as a call of a running attempt begins. Default: nowhere. */
  listOf?(caller: Caller): CallList | undefined;
  /** Begins the span of a call of a running attempt. Default: it has no span. */
  spanOf?(caller: Caller): CallSpan;
}
