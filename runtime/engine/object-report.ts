// Door: what dispatch knows of one object under one trigger, for a person who asks why a handler was not told.
import type { ResourceVersion } from "../base/resource-version.ts";
import type { WakesNext } from "./filter/key-rule.ts";
import type { FilteredEvent, PastRun } from "./history/history.ts";
import type { Preview } from "./state/known-objects.ts";
import type { LaneReport } from "./work/event-lane.ts";

export interface ObjectReport {
  /** Where the trigger stands in the object's namespace; undefined where it does not read that namespace. */
  readonly position: { readonly lowWaterMark: ResourceVersion | undefined; readonly ready: boolean } | undefined;
  /** Whether another shard has it; undefined of a function that is not in shards. */
  readonly isElsewhere?: boolean | undefined;
  /** As the trigger knows it once all that waits is done; undefined of one that it has never seen, or forgot. */
  readonly known: { readonly resourceVersion: ResourceVersion; readonly deleted: boolean } | undefined;
  /** Nothing is kept of it because it has not met the conditions, if it was brought at all. */
  readonly isStranger: boolean;
  /** What of the object waits, in memory; undefined where nothing does. */
  readonly lane: LaneReport | undefined;
  /** An event of it waits, in memory or on disk. */
  readonly waits: boolean;
  /** Newest first, of the trigger's last ones. */
  readonly filtered: readonly FilteredEvent[];
  readonly runs: readonly PastRun[];
  /** What an event with the object as it is now would come to; undefined where it was not seen. */
  readonly next: Preview | undefined;
  /** In mode Reconcile, whom that event would wake; undefined where it was not seen. */
  readonly wakes?: WakesNext | undefined;
}

/** How many of the object's filtered events and runs are told of, each. */
export const mostTold = 5;

/** What dispatch knows of a schedule's runs. */
export interface ScheduleReport {
  /** Another shard has it. */
  readonly isElsewhere: boolean;
  /** When the next one begins, epoch milliseconds; undefined where none does. */
  readonly next: number | undefined;
  /** One waits, or is under way. */
  readonly isBusy: boolean;
  /** Newest first. */
  readonly runs: readonly PastRun[];
}
