// Interface of reports on one object under one trigger, for a user who asks why a handler did not receive it.
import type { ResourceVersion } from "../base/resource-version.ts";
import type { WakesNext } from "./filter/key-rule.ts";
import type { FilteredEvent, PastRun } from "./history/history.ts";
import type { Preview } from "./state/known-objects.ts";
import type { LaneReport } from "./work/event-lane.ts";

export interface ObjectReport {
  /** The trigger's position in the object's namespace; `undefined` if it does not read that namespace. */
  readonly position: { readonly lowWaterMark: ResourceVersion | undefined; readonly ready: boolean } | undefined;
  /** Whether it belongs to another shard; `undefined` for a function without shards. */
  readonly isElsewhere?: boolean | undefined;
  /** The object's state after all waiting events; `undefined` if the trigger never saw it, or forgot it. */
  readonly known: { readonly resourceVersion: ResourceVersion; readonly deleted: boolean } | undefined;
  /** Whether no state of it is stored, because the conditions held for no state that was received. */
  readonly hasNeverMatched: boolean;
  /** The object's events that wait in memory; `undefined` if no event does. */
  readonly lane: LaneReport | undefined;
  /** Whether an event of it waits, in memory or on disk. */
  readonly waits: boolean;
  /** The object's share of the trigger's last ones, newest first. */
  readonly filtered: readonly FilteredEvent[];
  readonly runs: readonly PastRun[];
  /** The verdict on an event with the object's current state; `undefined` if the object was not fetched. */
  readonly next: Preview | undefined;
  /** In mode Reconcile, the keys that such an event would wake; `undefined` if the object was not fetched. */
  readonly wakes?: WakesNext | undefined;
}

/** The number of the object's filtered events, and of its runs, in a report. */
export const mostReported = 5;

/** The runs of a schedule, as far as dispatch knows them. */
export interface ScheduleReport {
  /** Whether another shard has it. */
  readonly isElsewhere: boolean;
  /** The begin of the next run, in epoch milliseconds; `undefined` if there is no next run. */
  readonly next: number | undefined;
  /** Whether a run waits, or is in progress. */
  readonly isBusy: boolean;
  /** Newest first. */
  readonly runs: readonly PastRun[];
}
