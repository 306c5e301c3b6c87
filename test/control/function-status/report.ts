import { countsOf, type FunctionReport } from "../../../runtime/control/function-status/function-report.ts";

/** The report of a function that runs and has handled all there was. */
export const reportOf = (more: Partial<FunctionReport> = {}): FunctionReport => ({
  name: "hot",
  ready: true,
  ...countsOf(),
  triggers: [],
  ...more,
});
