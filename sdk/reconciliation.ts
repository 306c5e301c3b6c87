import type { Stored } from "./kinds.ts";
import type { UnknownObject } from "./object.ts";

/** The unit of reconciling: namespace and name of the object of the trigger without `key`. */
export interface Key {
  /** Absent for a cluster-scoped kind. */
  readonly namespace?: string;
  readonly name: string;
}

/** Why a key runs. */
export interface Cause {
  /**
   * A change of an object, a scheduled time, or: the reconciler requested it (`Requeue`), the resync interval passed (`Resync`),
   * a user requested it (`Replay`).
   */
  readonly type: "Added" | "Modified" | "Deleted" | "Scheduled" | "Requeue" | "Resync" | "Replay";
  /** For a change: the name of the trigger, and the changed object. For a schedule: its name. */
  readonly trigger?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** One run of a key, with everything that caused it since the previous run. */
export interface Reconciliation<T = UnknownObject> {
  readonly key: Key;
  /**
   * The newest known state of the object of that name; undefined if it does not exist (any more). Raw JSON: timestamps are text.
   */
  readonly object: Stored<T> | undefined;
  /** Causes of the run, oldest first: the last 16, one for each object and trigger. */
  readonly causes: readonly Cause[];
  /** Counts from 1, and from 1 again after a newer cause. */
  readonly attempt: number;
  /** True if an earlier run for the same causes may have begun without completing. */
  readonly redelivered: boolean;
}
