import { errorCodes } from "../errors.ts";
import type { FunctionState } from "../sandbox/host/hosted-function.ts";
import type { SourceStatus } from "../watch/observer.ts";
import { sourceKey } from "../watch/source-spec.ts";
import type { LiveFunction, Trouble } from "./live-function.ts";

/** What readiness is judged by. */
export interface ReadinessParts {
  readonly liveFunctions: readonly Pick<LiveFunction, "name" | "state" | "behind">[];
  readonly sandbox: (functionName: string) => FunctionState | undefined;
  readonly sources: readonly SourceStatus[];
  /** Why the functions that are deployed are not the ones that were taken up. */
  readonly deployment: Trouble | undefined;
}

/** States in which a source has said why it cannot list: they do not hold up readiness. */
export const explainedStates = new Set(["missing", "forbidden", "degraded"]);

/**
 * Whether every function that can run has a first list of each of its sources, or that source says why it cannot list.
 * That is not so where all were kept from running by no mistake of theirs, or where the deployment is damaged and none
 * was found. Whoever started the runtime is to see it.
 */
export function isSettled({ liveFunctions, sandbox, sources: all, deployment }: ReadinessParts): boolean {
  if (liveFunctions.length === 0 && deployment) return false;
  if (liveFunctions.length > 0 && liveFunctions.every(({ state }) => isOurFault(state))) return false;
  // Asked many times in a start: one that has yet to begin says enough, before each of the others is looked into.
  if (liveFunctions.some(({ state }) => state.type === "starting")) return false;
  const sources = sourcesByKey(all);
  return liveFunctions.every((each) => {
    if (each.state.type !== "running" || sandbox(each.name)?.state === "failed") return true;
    return each.behind.every((key) => explainedStates.has(sources.get(key)?.state ?? ""));
  });
}

const isOurFault = (state: LiveFunction["state"]): boolean =>
  state.type === "disabled" && errorCodes[state.fault.code].blame === "system";

/** Sources by the key that functions name them with. */
export const sourcesByKey = (sources: readonly SourceStatus[]): ReadonlyMap<string, SourceStatus> =>
  new Map(sources.map((source) => [sourceKey(source), source]));
