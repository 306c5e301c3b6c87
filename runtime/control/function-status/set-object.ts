import type { SetState } from "../../catalog/cluster-source.ts";
import { accountOf, type Revision } from "../../catalog/deploy/revision.ts";
import { type Condition, type DeployedBy, dated, messageLimit } from "./function-object.ts";
import type { FunctionReport } from "./function-report.ts";
import { reasonOfCode, type StatusReason } from "./reason.ts";

/** Most functions of a set that its object names. Those that do not run are named first. */
const mostNamed = 100;

/** Reasons of functions that are not ready although nothing is wrong. */
const passing: ReadonlySet<string> = new Set<StatusReason>(["Starting", "CatchingUp", "Standby", "Paused"]);

/** The state of one function of a set. */
export type SetFunction = Pick<FunctionReport, "name" | "ready" | "deadLetters"> & {
  readonly reason?: string | undefined;
};

/** A set, and what its object says of it. */
export interface SetReport {
  readonly state: SetState;
  /** Its functions, in any order. */
  readonly functions: readonly SetFunction[];
  /** The record of its revision; `undefined` if it does not exist or cannot be read. */
  readonly record: Revision | undefined;
  /** Whether `spec.paused` of its object is true. */
  readonly isPaused: boolean;
  /** The object's generation that `isPaused` is from; `undefined` before the runtime has seen the object. */
  readonly generation: number | undefined;
}

/** Returns the deployment that a set's running code is from. */
export const deployedBy = ({ revision }: SetState, record: Revision | undefined): DeployedBy => ({
  revision,
  by: record && accountOf(record),
});

/**
 * Returns the status of a FunctionSet, as a merge patch: null removes a field.
 * @param before the current conditions; one whose status is unchanged keeps its time
 * @param now milliseconds since the epoch
 */
export function setStatusOf(report: SetReport, before: readonly Condition[], now: number) {
  const { state, record, generation } = report;
  const functions = report.functions.toSorted(
    (a, b) => Number(a.ready) - Number(b.ready) || (a.name < b.name ? -1 : 1),
  );
  const ready = functions.filter((each) => each.ready).length;
  const failing = functions.filter((each) => !each.ready && !passing.has(each.reason ?? "Starting"));
  const conditions = dated(conditionsOf(report, functions), before, now);
  const bad = conditions.find(({ type, status }) => type === "Deployed" && status === "False");
  const unready = conditions.find(({ type, status }) => type === "Ready" && status !== "True");
  const said = bad ?? unready;
  return {
    observedGeneration: generation ?? null,
    ready: `${ready}/${functions.length}`,
    revision: state.revision ?? null,
    deployedBy: record ? accountOf(record) : null,
    deployedAt: record?.at ?? null,
    git: record?.git ?? null,
    digest: record?.digest ?? null,
    counts: {
      functions: functions.length,
      ready,
      failing: failing.length,
      deadLetters: functions.reduce((sum, { deadLetters = 0 }) => sum + deadLetters, 0),
    },
    functions: functions.slice(0, mostNamed).map((each) => ({ name: each.name, state: stateOf(each) })),
    reason: said?.reason ?? null,
    message: said?.message ?? null,
    conditions,
  };
}

const stateOf = ({ ready, reason }: SetFunction): string => (ready ? "Ready" : (reason ?? "Starting"));

/** `functions`: those that are not ready first. */
function conditionsOf(
  { state: { fault, revision }, isPaused }: SetReport,
  functions: readonly SetFunction[],
): Omit<Condition, "lastTransitionTime">[] {
  const unready = functions.filter(({ ready }) => !ready);
  const [first] = unready.toSorted((a, b) => Number(passing.has(stateOf(a))) - Number(passing.has(stateOf(b))));
  const names = unready.slice(0, 10).map((each) => `${each.name}: ${stateOf(each)}`);
  const more = unready.length > names.length ? `, and ${unready.length - names.length} more` : "";
  return [
    first
      ? { type: "Ready", status: "False", reason: stateOf(first), message: `${names.join(", ")}${more}` }
      : functions.length > 0
        ? { type: "Ready", status: "True", reason: "Running", message: "" }
        : { type: "Ready", status: "False", reason: "NoFunctions", message: "it has no functions that can run" },
    fault
      ? {
          type: "Deployed",
          status: "False",
          reason: reasonOfCode(fault.code),
          message: fault.message.slice(0, messageLimit),
        }
      : {
          type: "Deployed",
          status: "True",
          reason: "Deployed",
          message: revision === undefined ? "" : `revision ${revision}`,
        },
    isPaused
      ? {
          type: "Paused",
          status: "True",
          reason: "SpecPaused",
          message: "`spec.paused` is true; events wait, in order",
        }
      : { type: "Paused", status: "False", reason: "NotPaused", message: "" },
  ];
}
