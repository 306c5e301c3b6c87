import type { ErrorCode } from "../errors.ts";

/** A rule between fields that does not hold. */
export interface RuleFault {
  readonly code: ErrorCode;
  readonly path: readonly (string | number)[];
  readonly what: string;
  readonly hint?: string;
}
