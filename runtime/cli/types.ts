import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { makeFolder } from "../base/folder.ts";
import { suggest } from "../base/suggest.ts";
import { systemReason } from "../base/wording.ts";
import { isBuilt } from "../manifest/built.ts";
import type { ManifestValues } from "../manifest/values.ts";
import { type Definition, fetchDefinitions, readDefinitions } from "../types/definition.ts";
import { functionTypes } from "../types/function-types.ts";
import { command, type Invocation } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions, kubeconfig, output, typesFolder } from "./options.ts";
import { readValidManifests, withCluster } from "./rbac.ts";
import { readValues, valuesOption } from "./values.ts";

export const types = command({
  name: "types",
  summary:
    "writes TypeScript types of each function, and of custom resources from the CustomResourceDefinitions of a cluster or of files",
  operands: "[DEFINITION...]",
  options: {
    functions: { ...functions, summary: "the functions folder, where each function gets its function.d.ts" },
    values: valuesOption,
    crd: { value: "PATH", summary: "a file, or a folder of files, to read in place of a cluster", many: true },
    out: { value: "DIR", summary: "the folder to write the types of custom resources to", default: typesFolder },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options, operands, given }) {
    const files: WrittenTypes[] = [];
    const wrote = (each: WrittenTypes) => {
      files.push(each);
      if (options.output !== "json") process.stdout.write(`${each.file}\n`);
    };
    const folder = operands.length === 0 ? functionsOf(options.functions, given.has("functions")) : undefined;
    const isSound = folder === undefined || (await writeFunctions(folder, readValues(options.values), wrote));
    for (const definition of await chosenDefinitions({ options, operands, given }, files.length > 0)) {
      const { declaration } = await import("../types/declaration.ts");
      const file = join(options.out, `${definition.metadata.name}.ts`);
      writeTypes(file, await declaration(definition));
      wrote({ file, definition: definition.metadata.name });
    }
    if (options.output === "json") process.stdout.write(`${JSON.stringify({ files }, null, 2)}\n`);
    return isSound ? 0 : 1;
  },
});

/** A written file, and the function or the CustomResourceDefinition that it is made from. */
type WrittenTypes = { readonly file: string } & ({ readonly function: string } | { readonly definition: string });

/** Returns the functions folder; `undefined` for a default one that does not exist. */
const functionsOf = (folder: string, isNamed: boolean): string | undefined =>
  isNamed || existsSync(folder) ? readFolder(folder) : undefined;

/**
 * Writes the types of every accepted function. Returns false, and writes the faults to stderr, if another is
 * refused or a value has no use.
 */
async function writeFunctions(
  folder: string,
  values: ManifestValues | undefined,
  wrote: (each: WrittenTypes) => void,
): Promise<boolean> {
  const { functions, faults } = await readValidManifests(folder, { values, placeholders: "option" });
  for (const { name, file, text } of isBuilt(folder) ? [] : functionTypes(functions)) {
    writeTypes(file, text);
    wrote({ file, function: name });
  }
  const unused = values?.unused() ?? [];
  for (const fault of unused) process.stderr.write(`${fault.message}\n`);
  return faults.length === 0 && unused.length === 0;
}

/**
 * Returns the definitions to make types from. Without options a cluster is asked if there is one; if functions have types
 * already, the cluster is optional.
 */
async function chosenDefinitions(
  { options, operands, given }: Pick<Invocation<typeof types.options>, "options" | "operands" | "given">,
  hasTypes: boolean,
): Promise<readonly Definition[]> {
  const isNamed = ["crd", "kubeconfig", "context"].some((name) => given.has(name));
  const found = given.has("crd")
    ? options.crd.flatMap(readDefinitions)
    : await withCluster(options, ({ transport }) => fetchDefinitions(transport)).catch((error) => {
        const fault = isNamed ? error : withFiles(error);
        if (!hasTypes || isNamed || !(fault instanceof WatchfireError) || fault.code !== "WF_KUBE_CONFIG") throw fault;
        process.stderr.write(`no types of custom resources: ${fault.message}\n`);
        return [];
      });
  if (found.length === 0 && operands.length === 0 && !(hasTypes && !isNamed)) {
    const place = given.has("crd") ? { place: { file: options.crd.join(", ") } } : {};
    throw new WatchfireError("WF_TYPES_NONE", { what: "there is no CustomResourceDefinition", ...place });
  }
  return operands.length === 0 ? found : operands.map((name) => named(name, found));
}

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

function writeTypes(file: string, text: string): void {
  try {
    makeFolder(dirname(file));
    writeFileSync(file, text);
  } catch (cause) {
    throw new WatchfireError("WF_TYPES_FOLDER", { what: systemReason(cause), place: { file }, cause });
  }
}
