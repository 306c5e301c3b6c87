import { countsOf, type FunctionReport } from "../../../runtime/control/function-status/function-report.ts";

/** The report of a running function that has handled all events. */
export const reportOf = (more: Partial<FunctionReport> = {}): FunctionReport => ({
  name: "hot",
  ready: true,
  ...countsOf(),
  triggers: [],
  ...more,
});
