import { type LoadedFunctions, type LoadOptions, loadFunctions } from "../../runtime/manifest/load.ts";
import { folderOf } from "../tools/folder.ts";

/** Loads a folder with one function `f` of this spec (YAML, indented by two), whose handler exists. */
export async function loadSpec(spec: string, options?: LoadOptions): Promise<LoadedFunctions & { lines: string[] }> {
  const folder = folderOf({ "f/function.yaml": manifest("f", spec), "f/handler.ts": "" });
  const loaded = await loadFunctions(folder, options);
  return { ...loaded, lines: loaded.faults.map((fault) => fault.message.replace(`${folder}/`, "")) };
}

/** The smallest function, and what is added to its spec. */
export const manifest = (name: string, spec = ""): string =>
  `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: ${name} }
spec:
  handler: ./handler.ts
${spec || "  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap } }]"}
`;
