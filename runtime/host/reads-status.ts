import type { FunctionReport } from "../control/function-status/function-report.ts";
import { reasonOfCode, reasonOfState, type StatusReason } from "../control/function-status/reason.ts";
import type { SourceStatus } from "../informer/fanout/observer.ts";
import type { FunctionReads } from "../reads/function-reads.ts";
import { explainedStates } from "./readiness.ts";

type Reported = NonNullable<FunctionReport["reads"]>;

/** What a function keeps in memory, with the worst state of each read's sources. */
export function describeReads(
  reads: FunctionReads | undefined,
  sources: ReadonlyMap<string, SourceStatus>,
  worst: (of: readonly SourceStatus[]) => SourceStatus | undefined,
): Reported {
  return (reads?.report() ?? []).map(({ sources: keys, ...report }) => {
    const source = worst(keys.flatMap((key) => sources.get(key) ?? []));
    return {
      ...report,
      state: source?.state ?? "idle",
      ...(source?.message !== undefined && { message: source.message }),
    };
  });
}

/** Why the function takes no events: too much is read, or a first list cannot be had. */
export function readsTrouble(reads: FunctionReads | undefined, reported: Reported) {
  if (reads?.fault) {
    const { code, message } = reads.fault;
    return { reason: reasonOfCode(code), code, message };
  }
  const stuck = reported.find(({ ready, state }) => !ready && explainedStates.has(state));
  return stuck && said(stuck);
}

/** What its author should know of its reads, though it runs. */
export const readsNote = (reported: Reported) => {
  const noted = reported.find(({ state }) => explainedStates.has(state));
  return noted && said(noted);
};

function said({ apiVersion, kind, state, message }: Reported[number]): { reason: StatusReason; message: string } {
  const why = message ?? `its source is in state ${state}`;
  const shown = state === "missing" ? "is empty" : "is not kept up";
  return {
    reason: reasonOfState(state) ?? "InternalError",
    message: `the read of ${apiVersion} ${kind} ${shown}: ${why}`,
  };
}
