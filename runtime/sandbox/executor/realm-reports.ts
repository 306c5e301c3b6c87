import type { EndReason } from "../messages.ts";
import type { OutboxSummary } from "./outbox.ts";

/** What a realm tells its owner. */
export interface RealmReports {
  entering(events: readonly number[]): void;
  drained(outbox: string, summary: OutboxSummary): void;
  /** What an event that is about to be charged had written. */
  salvaged(outbox: string): void;
  /** Code of an event stands still until `reply` answers this call. */
  asking(call: number, no: number, operation: string, args: string): void;
  /** The isolate is given up; `running`: its thread has not stopped yet. */
  ended(
    reason: EndReason,
    charged: readonly number[],
    interrupted: readonly number[],
    stack: string,
    running: boolean,
  ): void;
  /** Its thread has stopped, which was still running when it ended. */
  left(): void;
  /** Disposed of, and still running. */
  unstoppable(): void;
}
