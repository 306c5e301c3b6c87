import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import { builtInWarnings } from "../rbac/built-in.ts";
import { definedResources } from "../rbac/kinds.ts";
import { type ReachOptions, reachWarnings } from "../rbac/reach.ts";
import { wildcardFaults } from "../rbac/wildcards.ts";

/** Says what is no fault, and had better be otherwise: a line on stderr that changes no exit status. */
export function warn(message: string): void {
  process.stderr.write(`warning: ${message}\n`);
}

/** Warns of each permission that reaches the runtime's own objects, and gives their number. */
export function warnOfReach(loaded: LoadedFunctions, runtime: ReachOptions): number {
  return warnOfEach(loaded, (manifest) => reachWarnings(manifest, runtime));
}

/** Warns of each name that Kubernetes' own API groups are not known to have, and gives their number. */
export function warnOfNames(folder: string, loaded: LoadedFunctions): number {
  const defined = definedResources(folder, loaded.functions);
  return warnOfEach(loaded, (manifest) => builtInWarnings(manifest, defined));
}

/** Warns of each permission that no rule is made of, and gives their number. */
export const warnOfWildcards = (loaded: LoadedFunctions): number => warnOfEach(loaded, wildcardFaults);

function warnOfEach(
  { functions, documents }: LoadedFunctions,
  warningsOf: (manifest: FunctionManifest) => readonly RuleFault[],
): number {
  const warnings = functions.flatMap((manifest) => {
    const document = documents.get(manifest.name);
    return document ? warningsOf(manifest).map((each) => faultOfRule(each, document)) : [];
  });
  for (const { message } of warnings) warn(message);
  return warnings.length;
}
