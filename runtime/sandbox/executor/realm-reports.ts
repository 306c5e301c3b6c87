import type { EndReason, EntryUse } from "../messages.ts";
import type { OutboxSummary } from "./outbox.ts";

/** Callbacks through which a realm reports to its owner. */
export interface RealmReports {
  entering(events: readonly number[]): void;
  drained(outbox: string, summary: OutboxSummary, used: EntryUse): void;
  /** Output that an event had written before it is charged for breaking a limit. */
  salvaged(outbox: string): void;
  /** Code of an event is blocked until `reply` answers this call. */
  asking(call: number, no: number, operation: string, args: string): void;
  /** The isolate was ended. `running`: its thread has not stopped yet. */
  ended(
    reason: EndReason,
    charged: readonly number[],
    interrupted: readonly number[],
    stack: string,
    running: boolean,
  ): void;
  /** A thread that was still running at `ended` has stopped. */
  left(): void;
  /** The isolate is disposed, but its thread is still running. */
  unstoppable(): void;
}
