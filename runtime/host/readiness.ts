import { errorCodes } from "../base/errors.ts";
import type { SourceStatus } from "../informer/fanout/observer.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { HostedState } from "../sandbox/host/hosted-function.ts";
import type { LiveFunction, Trouble } from "./live-function.ts";

/** Inputs of readiness. */
export interface ReadinessParts {
  readonly liveFunctions: readonly Pick<LiveFunction, "name" | "state" | "behind">[];
  readonly sandbox: (functionName: string) => HostedState | undefined;
  readonly sources: readonly SourceStatus[];
  /** Why the deployed functions are not the ones in use. */
  readonly deployment: Trouble | undefined;
}

/** States in which an informer has reported why it cannot list. They do not hold up readiness. */
export const explainedStates = new Set(["missing", "forbidden", "degraded"]);

/**
 * True if every function that can run has a first list from each of its informers, or a report why that informer cannot list.
 * False if every function is kept from running by a fault of the platform, or if there is no function and the deployment is
 * damaged or cannot be read, so that the runtime's operator notices.
 */
export const isSettled = (parts: ReadinessParts): boolean => unsettledBy(parts) === undefined;

/** Describes why the functions are not settled. `undefined` if they are. */
export function unsettledBy({ liveFunctions, sandbox, sources: all, deployment }: ReadinessParts): string | undefined {
  const [first] = liveFunctions;
  if (!first) return deployment?.message;
  const fault = ourFault(first.state);
  if (fault && liveFunctions.every(({ state }) => ourFault(state))) {
    return `the function ${first.name} does not run: ${fault.code}; /status says more`;
  }
  // Called often during a start, so a function that has not started yet is reported before the others are examined.
  const starting = liveFunctions.find(({ state }) => state.type === "starting");
  if (starting) return `the function ${starting.name} is being built and loaded`;
  const sources = sourcesByKey(all);
  const late = liveFunctions.find((each) => {
    if (each.state.type !== "running" || sandbox(each.name)?.state === "failed") return false;
    return each.behind.some((key) => !explainedStates.has(sources.get(key)?.state ?? ""));
  });
  return late && `the function ${late.name} has not caught up with its first lists`;
}

const ourFault = (state: LiveFunction["state"]): Trouble | undefined =>
  state.type === "disabled" && errorCodes[state.fault.code].blame === "system" ? state.fault : undefined;

/** Informers by `sourceKey`. */
export const sourcesByKey = (sources: readonly SourceStatus[]): ReadonlyMap<string, SourceStatus> =>
  new Map(sources.map((source) => [sourceKey(source), source]));
