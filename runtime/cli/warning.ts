import { faultOfRule } from "../manifest/fault.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import { type ReachOptions, reachWarnings } from "../rbac/reach.ts";

/** Says what is no fault, and had better be otherwise: a line on stderr that changes no exit status. */
export function warn(message: string): void {
  process.stderr.write(`warning: ${message}\n`);
}

/** Warns of each permission that reaches the runtime's own objects, and gives their number. */
export function warnOfReach({ functions, documents }: LoadedFunctions, runtime: ReachOptions): number {
  const warnings = functions.flatMap((manifest) => {
    const document = documents.get(manifest.name);
    return document ? reachWarnings(manifest, runtime).map((each) => faultOfRule(each, document)) : [];
  });
  for (const { message } of warnings) warn(message);
  return warnings.length;
}
