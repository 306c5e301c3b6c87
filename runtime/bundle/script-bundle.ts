import { createHash } from "node:crypto";
import type { Bundle } from "./bundle.ts";

/** The global through which a bundle hands over its default export; the guest's bootstrap takes it away again. */
export const acceptHandler = "__watchfire_accept";

/** The script's name inside the isolate: what V8 puts into stacks. */
export const scriptName = (functionName: string): string => `app:///${functionName}/handler.js`;

/** A script as a bundle. What can be told from the script is told from it, wherever it comes from. */
export function bundleOf(script: string, sourceMap: string, inputs: readonly string[] = []): Bundle {
  const hash = createHash("sha256").update(script).digest("hex");
  const usesOldObject = script.includes("oldObject");
  return { script, sourceMap, sourceMapLength: sourceMap.length, hash, inputs, usesOldObject };
}
