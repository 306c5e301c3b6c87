import { createHash } from "node:crypto";
import type { Bundle } from "./bundle.ts";

/** A script as a bundle. What can be told from the script is told from it, wherever it comes from. */
export function bundleOf(script: string, sourceMap: string, inputs: readonly string[] = []): Bundle {
  const hash = createHash("sha256").update(script).digest("hex");
  return { script, sourceMap, hash, inputs, usesOldObject: script.includes("oldObject") };
}
