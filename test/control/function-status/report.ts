import type { FunctionReport } from "../../../runtime/control/function-status/function-report.ts";

/** The counts of a function that has done all its work. */
export const noCounts = {
  deadLetters: 0,
  deadLettersWithoutBody: 0,
  lagSeconds: 0,
  queued: 0,
  inFlight: 0,
  spilled: 0,
  requeued: 0,
  blockedLanes: 0,
  failures: 0,
};

/** The report of a running function that has handled all events. */
export const reportOf = (more: Partial<FunctionReport> = {}): FunctionReport => ({
  name: "hot",
  ready: true,
  ...noCounts,
  triggers: [],
  ...more,
});
