import { errorCodes } from "../base/errors.ts";
import type { SourceStatus } from "../informer/fanout/observer.ts";
import { sourceKey } from "../informer/fanout/source-spec.ts";
import type { HostedState } from "../sandbox/host/hosted-function.ts";
import type { LiveFunction, Trouble } from "./live-function.ts";

/** What readiness is judged by. */
export interface ReadinessParts {
  readonly liveFunctions: readonly Pick<LiveFunction, "name" | "state" | "behind">[];
  readonly sandbox: (functionName: string) => HostedState | undefined;
  readonly sources: readonly SourceStatus[];
  /** Why the functions that are deployed are not the ones that were taken up. */
  readonly deployment: Trouble | undefined;
}

/** States in which a source has said why it cannot list: they do not hold up readiness. */
export const explainedStates = new Set(["missing", "forbidden", "degraded"]);

/**
 * Whether every function that can run has a first list of each of its sources, or that source says why it cannot list.
 * That is not so where all were kept from running by no mistake of theirs. Nor is it where none was found, and the
 * deployment is damaged or cannot be read. Whoever started the runtime is to see it.
 */
export const isSettled = (parts: ReadinessParts): boolean => unsettledBy(parts) === undefined;

/** What holds that up, in words; undefined where nothing does. */
export function unsettledBy({ liveFunctions, sandbox, sources: all, deployment }: ReadinessParts): string | undefined {
  const [first] = liveFunctions;
  if (!first) return deployment?.message;
  const fault = ourFault(first.state);
  if (fault && liveFunctions.every(({ state }) => ourFault(state))) {
    return `the function ${first.name} does not run: ${fault.code}; /status says more`;
  }
  // Asked many times in a start: one that has yet to begin says enough, before each of the others is looked into.
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

/** Sources by the key that functions name them with. */
export const sourcesByKey = (sources: readonly SourceStatus[]): ReadonlyMap<string, SourceStatus> =>
  new Map(sources.map((source) => [sourceKey(source), source]));
