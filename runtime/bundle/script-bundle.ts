import { createHash } from "node:crypto";
import type { Bundle } from "./bundle.ts";

/** Global through which a bundle passes its default export; the guest's bootstrap removes it. */
export const acceptHandler = "__watchfire_accept";

/** Returns the script's name inside the isolate, which V8 shows in stacks. */
export const scriptName = (functionName: string): string => `app:///${functionName}/handler.js`;

/** Creates a bundle from a script. Derived facts are always computed from the script, wherever it comes from. */
export function bundleOf(script: string, sourceMap: string, inputs: readonly string[] = []): Bundle {
  const hash = createHash("sha256").update(script).digest("hex");
  const usesOldObject = script.includes("oldObject");
  return { script, sourceMap, sourceMapLength: sourceMap.length, hash, inputs, usesOldObject };
}
