import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { suggest } from "../base/suggest.ts";
import { systemReason } from "../base/wording.ts";
import { type Definition, fetchDefinitions, readDefinitions } from "../types/definition.ts";
import { command } from "./command.ts";
import { kubeconfig, output } from "./options.ts";
import { withCluster } from "./rbac.ts";

export const types = command({
  name: "types",
  summary: "writes TypeScript types of custom resources, from the CustomResourceDefinitions of a cluster or of files",
  operands: "[DEFINITION...]",
  options: {
    crd: { value: "PATH", summary: "a file, or a folder of files, to read in place of a cluster", many: true },
    out: { value: "DIR", summary: "the folder to write to", default: "types" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options, operands, given }) {
    const { crd, out } = options;
    const found = given.has("crd")
      ? crd.flatMap(readDefinitions)
      : await withCluster(options, ({ transport }) => fetchDefinitions(transport)).catch((error) => {
          throw given.has("kubeconfig") || given.has("context") ? error : withFiles(error);
        });
    const chosen = operands.length === 0 ? found : operands.map((name) => named(name, found));
    if (chosen.length === 0) {
      const place = given.has("crd") ? { place: { file: crd.join(", ") } } : {};
      throw new WatchfireError("WF_TYPES_NONE", { what: "there is no CustomResourceDefinition", ...place });
    }
    const { declaration } = await import("../types/declaration.ts");
    const files: { readonly file: string; readonly definition: string }[] = [];
    for (const definition of chosen) {
      const file = join(out, `${definition.metadata.name}.ts`);
      write(out, file, await declaration(definition));
      files.push({ file, definition: definition.metadata.name });
      if (options.output !== "json") process.stdout.write(`${file}\n`);
    }
    if (options.output === "json") process.stdout.write(`${JSON.stringify({ files }, null, 2)}\n`);
    return 0;
  },
});

/** Adds a hint about --crd if no cluster was given or found. */
function withFiles(error: unknown): unknown {
  if (!(error instanceof WatchfireError) || error.code !== "WF_KUBE_CONFIG") return error;
  const hint = "name the definitions' file or folder with --crd, or a cluster with --kubeconfig or --context";
  return new WatchfireError(error.code, { ...error.detail, hint });
}

function named(name: string, found: readonly Definition[]): Definition {
  const definition = found.find(({ metadata }) => metadata.name === name);
  if (definition) return definition;
  const near = suggest(
    name,
    found.map(({ metadata }) => metadata.name),
  );
  throw new WatchfireError("WF_TYPES_NONE", {
    what: "there is no CustomResourceDefinition of this name",
    actual: name,
    ...(near !== undefined && { hint: `did you mean ${near}?` }),
  });
}

function write(folder: string, file: string, text: string): void {
  try {
    makeFolder(folder);
    writeFileSync(file, text);
  } catch (cause) {
    throw new WatchfireError("WF_TYPES_FOLDER", { what: systemReason(cause), place: { file }, cause });
  }
}
