import { dirname } from "node:path";
import { WatchfireError } from "../errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { placeholders, usesOfAbsentNames } from "./absent-names.ts";
import { buildHandler } from "./build-handler.ts";
import type { Bundle } from "./bundle.ts";
import { bundleOf } from "./script-bundle.ts";
import { displayPath } from "./source-path.ts";

/** The script's name inside the isolate: what V8 puts into stacks. */
export const scriptName = (functionName: string): string => `app:///${functionName}/handler.js`;

/**
 * Bundles a function's handler and all it imports into one script for an isolate.
 * TypeScript and JavaScript; npm packages installed beside the functions are included.
 * @throws WatchfireError whose `faults` are all that an isolate could not run, each with file, line and column: imports of
 * Node's built-in modules, native addons, imports whose name is only known at run time, names that exist in Node alone
 */
export async function bundleFunction(manifest: Pick<FunctionManifest, "name" | "handler">): Promise<Bundle> {
  const { handler } = manifest;
  // A first build marks the free uses of absent names. Only where a package uses one is a second, unmarked build needed.
  let { output, faults } = await buildHandler(handler, { define: placeholders });
  const uses = output && usesOfAbsentNames(output.script, output.map, handler);
  refuse([...faults, ...(uses ? uses.faults : await furtherFaults(handler))]);
  if (uses?.marked) ({ output, faults } = await buildHandler(handler, { define: {} }));
  refuse(faults);
  if (!output) throw new Error("esbuild failed and did not say why");
  return bundleOf(`${output.script}\n;undefined`, withDisplayPaths(output.map, handler), output.inputs);
}

/** A build that failed has not come to the names: another goes on without the imports that failed, to look for them. */
async function furtherFaults(handler: string): Promise<readonly WatchfireError[]> {
  const { output, faults } = await buildHandler(handler, { define: placeholders, lenient: true });
  return output ? [...faults, ...usesOfAbsentNames(output.script, output.map, handler).faults] : faults;
}

/** Throws the faults if there are any: each once, in the order of the files. */
function refuse(faults: readonly WatchfireError[]): void {
  const once = [...new Map(faults.map((fault) => [fault.message, fault])).values()];
  const [first, ...more] = once.sort((a, b) => byPlace(a, b));
  if (first) throw new WatchfireError(first.code, { ...first.detail, more });
}

function byPlace({ detail: { place: a } }: WatchfireError, { detail: { place: b } }: WatchfireError): number {
  if (a?.file !== b?.file) return (a?.file ?? "") < (b?.file ?? "") ? -1 : 1;
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}

/**
 * The map with each source as a person would name it: below the working directory relative to it, else absolute. The
 * handler is among them even if nothing of it is left in the script.
 */
function withDisplayPaths(map: string, handler: string): string {
  const parsed = JSON.parse(map) as { sources: string[]; sourcesContent?: string[] };
  const folder = dirname(handler);
  const sources = parsed.sources.map((source) => displayPath(source, folder));
  const own = displayPath(handler, folder);
  if (sources.includes(own)) return JSON.stringify({ ...parsed, sources });
  return JSON.stringify({
    ...parsed,
    sources: [...sources, own],
    sourcesContent: [...(parsed.sourcesContent ?? []), ""],
  });
}
