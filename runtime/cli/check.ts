import type { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** The result of one kind of check, and what it could not check. */
export interface CheckResult {
  readonly faults: readonly WatchfireError[];
  /** The functions that have the faults. */
  readonly faulty: readonly FunctionManifest[];
  /** Descriptions for people. */
  readonly unchecked: readonly string[];
}
