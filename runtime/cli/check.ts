import type { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** What one kind of check found, and what it could not look at. */
export interface CheckResult {
  readonly faults: readonly WatchfireError[];
  /** The functions whose faults they are. */
  readonly faulty: readonly FunctionManifest[];
  /** In words. */
  readonly unchecked: readonly string[];
}
