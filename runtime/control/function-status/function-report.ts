import type { ErrorCode } from "../../base/errors.ts";
import type { HeldBackCount } from "../../engine/history/history.ts";
import type { StatusReason } from "./reason.ts";

/** One function on the status page. */
export interface FunctionReport {
  readonly name: string;
  /** Those of one group share executors with nobody else; absent where the manifest names none. */
  readonly trustGroup?: string;
  /** It runs, has caught up with its first lists, and nothing keeps it from taking events. */
  readonly ready: boolean;
  /** What is wrong, in one word and in words; absent where nothing is. */
  readonly reason?: StatusReason;
  readonly message?: string;
  /** The code of the failure that it comes from, where it comes from one. */
  readonly code?: ErrorCode;
  /** Who says that no handler begins; absent where it is not paused. */
  readonly paused?: "manifest" | "command";
  readonly deadLetters: number;
  /** Those of them whose bodies had to go, so that the function keeps within its limit: they cannot be replayed. */
  readonly deadLettersWithoutBody: number;
  /** Age of the oldest event that is not done. */
  readonly lagSeconds: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly spilled: number;
  /** In mode Reconcile: keys that are to run, now or later, and how many of them have no object. */
  readonly keys?: { readonly count: number; readonly withoutObject: number };
  readonly blockedLanes: number;
  readonly failures: number;
  /** ISO 8601; when an attempt last ended. */
  readonly lastEvent?: string;
  /** Its last events that were filtered, 200 at most, by their reasons; absent where there are none. `last` is ISO 8601. */
  readonly filtered?: readonly (Omit<HeldBackCount, "last"> & { readonly last: string })[];
  readonly triggers: readonly {
    readonly name: string;
    readonly apiVersion: string;
    readonly kind: string;
    /** The worst of its sources' states; of a schedule `scheduled`. */
    readonly state: string;
    readonly message?: string;
    /** Of a schedule: when it runs next, ISO 8601; absent where it does not run here. */
    readonly next?: string;
    /** Conditions that could not be evaluated since the start, with the last reason; absent where there are none. */
    readonly conditionErrors?: readonly {
      readonly condition: string;
      readonly count: number;
      readonly message: string;
    }[];
  }[];
  /** What it keeps in memory for `ctx.cache`; absent where that is nothing. */
  readonly reads?: readonly {
    readonly apiVersion: string;
    readonly kind: string;
    /** The worst of its sources' states. */
    readonly state: string;
    readonly message?: string;
    /** Its first list is complete. */
    readonly ready: boolean;
    readonly objects: number;
    readonly bytes: number;
    /** Milliseconds since the API server last said anything of it; absent before its first list. */
    readonly ageMs?: number | undefined;
  }[];
}
