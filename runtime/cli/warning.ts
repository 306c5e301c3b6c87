import type { WatchfireError } from "../base/errors.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import { builtInWarnings } from "../rbac/built-in.ts";
import { definedResources } from "../rbac/kinds.ts";
import { type ReachOptions, reachWarnings } from "../rbac/reach.ts";
import { wildcardFaults } from "../rbac/wildcards.ts";

/** Writes a warning to stderr. Does not change the exit status. */
export function warn(message: string): void {
  process.stderr.write(`warning: ${message}\n`);
}

/** Returns a warning for each permission that reaches the runtime's objects. */
export const warningsOfReach = (loaded: LoadedFunctions, runtime: ReachOptions): WatchfireError[] =>
  warningsOf(loaded, (manifest) => reachWarnings(manifest, runtime));

/** Returns a warning for each name that Kubernetes' own API groups are not known to have. */
export function warningsOfNames(folder: string, loaded: LoadedFunctions): WatchfireError[] {
  const defined = definedResources(folder, loaded.functions);
  return warningsOf(loaded, (manifest) => builtInWarnings(manifest, defined));
}

/** Returns a warning for each permission that no rule can be made of. */
export const warningsOfWildcards = (loaded: LoadedFunctions): WatchfireError[] => warningsOf(loaded, wildcardFaults);

const warningsOf = (
  { functions, documents }: LoadedFunctions,
  rulesOf: (manifest: FunctionManifest) => readonly RuleFault[],
): WatchfireError[] =>
  functions.flatMap((manifest) => {
    const document = documents.get(manifest.name);
    return document ? rulesOf(manifest).map((each) => faultOfRule(each, document)) : [];
  });
