import type { Stored } from "./kinds.ts";
import type { UnknownObject } from "./object.ts";

/** What is brought to its desired state: the namespace and name of the object of the trigger without `key`. */
export interface Key {
  /** Absent of a cluster-scoped kind. */
  readonly namespace?: string;
  readonly name: string;
}

/** Why a key runs. */
export interface Cause {
  /** A change of an object, a schedule's time, or: it had asked for it (`Requeue`), it was time (`Resync`), somebody asked (`Replay`). */
  readonly type: "Added" | "Modified" | "Deleted" | "Scheduled" | "Requeue" | "Resync" | "Replay";
  /** Of a change: the name of the trigger, and the object that changed. Of a schedule: its name. */
  readonly trigger?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** One run of a key: everything that woke it since the run before. */
export interface Reconciliation<T = UnknownObject> {
  readonly key: Key;
  /** The newest state known of the object of that name; undefined where there is none (any more). Raw JSON: timestamps are text. */
  readonly object: Stored<T> | undefined;
  /** What woke it, oldest first: the last 16, one for each object and trigger. */
  readonly causes: readonly Cause[];
  /** Counts from 1, and from 1 again once something newer has woken it. */
  readonly attempt: number;
  /** An earlier run for the same causes may have begun and not come to its end. */
  readonly redelivered: boolean;
}
