import { readFileSync } from "node:fs";
import { WatchfireError } from "../base/errors.ts";
import { isBuilt } from "../manifest/built.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import { namesNotBuiltIn } from "../rbac/built-in.ts";
import { callWarnings } from "../rbac/handler-calls.ts";
import { builtInKinds, definedKinds, definedResources, type KnownKinds } from "../rbac/kinds.ts";
import { type ReachOptions, reachWarnings } from "../rbac/reach.ts";
import { wildcardFaults } from "../rbac/wildcards.ts";
import { staleFunctionTypes } from "../types/function-types.ts";
import { literalCalls } from "../types/handler-text.ts";
import { triggerFaults } from "./trigger-types.ts";

/** Writes a warning to stderr. Does not change the exit status. */
export function warn(message: string): void {
  process.stderr.write(`warning: ${message}\n`);
}

/** Returns a warning for each permission that reaches the runtime's objects. */
export const warningsOfReach = (loaded: LoadedFunctions, runtime: ReachOptions): WatchfireError[] =>
  warningsOf(loaded, (manifest) => reachWarnings(manifest, runtime));

/** Returns faults and warnings for names that Kubernetes' own API groups are not known to have. */
export function compareNames(
  folder: string,
  loaded: LoadedFunctions,
): { [Of in "faults" | "warnings"]: WatchfireError[] } {
  const defined = definedResources(folder, loaded.functions);
  return {
    faults: warningsOf(loaded, (manifest) => namesNotBuiltIn(manifest, defined).faults),
    warnings: warningsOf(loaded, (manifest) => namesNotBuiltIn(manifest, defined).warnings),
  };
}

/** Returns a warning for each permission that no rule can be made of. */
export const warningsOfWildcards = (loaded: LoadedFunctions): WatchfireError[] => warningsOf(loaded, wildcardFaults);

/**
 * Faults and warnings of comparing each handler's own file with its manifest: the types of its triggers, and its literal calls.
 * Handlers of a built folder are not compared.
 */
export function compareHandlers(
  folder: string,
  { functions, documents }: LoadedFunctions,
): { readonly faults: WatchfireError[]; readonly warnings: WatchfireError[] } {
  const sources = isBuilt(folder) ? [] : functions.map((manifest) => ({ manifest, source: sourceOf(manifest) }));
  const defined = definedKinds(folder, functions);
  const kinds: KnownKinds = (apiVersion, kind) => builtInKinds(apiVersion, kind) ?? defined(apiVersion, kind);
  return {
    faults: sources.flatMap(({ manifest, source }) => {
      const document = documents.get(manifest.name);
      return document ? triggerFaults(manifest, source, document) : [];
    }),
    warnings: sources.flatMap(({ manifest, source }) => callWarnings(manifest, literalCalls(source), kinds)),
  };
}

/** Returns a warning for each `function.d.ts` that is not of its manifest. */
export const warningsOfTypes = ({ functions }: LoadedFunctions): WatchfireError[] =>
  staleFunctionTypes(functions).map(
    ({ file }) => new WatchfireError("WF_TYPES_STALE", { what: "its manifest has changed", place: { file } }),
  );

/** A handler that cannot be read is reported by the build. */
function sourceOf({ handler }: FunctionManifest): string {
  try {
    return readFileSync(handler, "utf8");
  } catch {
    return "";
  }
}

const warningsOf = (
  { functions, documents }: LoadedFunctions,
  rulesOf: (manifest: FunctionManifest) => readonly RuleFault[],
): WatchfireError[] =>
  functions.flatMap((manifest) => {
    const document = documents.get(manifest.name);
    return document ? rulesOf(manifest).map((each) => faultOfRule(each, document)) : [];
  });
