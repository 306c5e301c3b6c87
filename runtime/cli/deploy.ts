import { resolve } from "node:path";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { manifestText } from "../catalog/manifest-text.ts";
import { type PackedFunction, packFunction } from "../catalog/packed-function.ts";
import { SigningKey } from "../catalog/signature.ts";
import type { SharedTransport } from "../kube/transport.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { ManifestValues } from "../manifest/values.ts";
import { type BuildOutcome, buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { areNone, deploySet, messageOption, noteOf, readMessage } from "./deploy-set.ts";
import { setYaml } from "./deploy-yaml.ts";
import { deploymentOptions } from "./deployment.ts";
import { functions, kubeconfig, output } from "./options.ts";
import { allExpressible, knownKinds, readManifests, readRules, rulesOptions, withCluster } from "./rbac.ts";
import { runtimeNamespaceOption, withRuntimeNamespace } from "./runtime-namespace.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";
import { readValues, valuesOption } from "./values.ts";
import { warn, warningsOfReach } from "./warning.ts";

export const deploy = command({
  name: "deploy",
  summary: "deploys the functions to the cluster, where a runtime started with --deployed runs them",
  options: {
    functions,
    namespace: { value: "NS", summary: "the runtime's namespace, or one that shares it; default: the context's" },
    "runtime-namespace": runtimeNamespaceOption,
    "service-account": rulesOptions["service-account"],
    store: rulesOptions.store,
    set: setOption,
    values: valuesOption,
    message: messageOption,
    canary: {
      value: "SHARE",
      summary: "gives the new code this share of the keys, such as 10%, until `watchfire promote` or `watchfire abort`",
    },
    ...deploymentOptions,
    sign: { value: "KEY", summary: "signs the deployment with this ed25519 private key, a PEM file" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    "code-only": {
      summary: "writes no accounts and no rights; refused if the existing ones do not suffice",
    },
    output: {
      ...output("json", "yaml"),
      summary: "the format of the output; yaml writes nothing, and prints the objects for Git",
    },
  },
  async run({ options, given }) {
    const set = options.set === undefined ? setNameOf(options.functions, process.cwd()) : readSet(options.set);
    const message = readMessage(options.message ?? "");
    const canary = readShare(options.canary);
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const values = readValues(options.values);
    const loaded = await readManifests(options.functions, values);
    const built = loaded && (await build(options.functions, loaded.functions));
    if (!built) return 1;
    if (loaded.functions.length === 0) {
      throw new WatchfireError("WF_DEPLOYED_EMPTY", { what: "no function there", place: { file: options.functions } });
    }
    // The folder's name is not part of the content. Built functions already name their files without it.
    const root = isBuilt(options.functions) ? process.cwd() : resolve(options.functions);
    const print = async (namespace: string | undefined, transport?: SharedTransport): Promise<number> => {
      const given = readRules({ ...options, namespace }, new Set());
      const rules = transport ? await withRuntimeNamespace(given, transport) : given;
      const kinds = await knownKinds(options.functions, loaded.functions, transport);
      const packed = allExpressible(loaded, kinds, rules) && pack(built, { ...rules, root }, values);
      if (!packed) return 1;
      for (const { message } of warningsOfReach(loaded, rules)) warn(message);
      const epoch = readEnvironment().variables.SOURCE_DATE_EPOCH;
      const manifests = loaded.functions;
      process.stdout.write(setYaml({ set, rules, kinds, packed, manifests, key, codeOnly: isCodeOnly, epoch }));
      return 0;
    };
    const isCodeOnly = given.has("code-only");
    const isYaml = options.output === "yaml";
    if (isYaml && given.has("dry-run")) {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--output yaml writes nothing, and takes no --dry-run" });
    }
    if (isYaml && canary !== undefined) {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--output yaml renders no canary" });
    }
    // Without a cluster, the text depends on the sources alone.
    if (isYaml && options.kubeconfig === undefined && options.context === undefined) return print(options.namespace);
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const { namespace = defaultNamespace } = options;
      if (isYaml) return print(namespace, transport);
      const rules = await withRuntimeNamespace(readRules({ ...options, namespace }, new Set()), transport);
      const kinds = await knownKinds(options.functions, loaded.functions, transport);
      const packed = pack(built, { ...rules, root }, values);
      if (!packed) return 1;
      const note = await noteOf(transport, options.functions, message);
      const isJson = options.output === "json";
      return deploySet(
        { loaded, built, packed },
        {
          ...{ set, rules, kinds, transport, given, key, note, isJson, canary },
          filled: values?.uses ?? [],
        },
      );
    });
  },
});

/** Returns a percentage. @throws WatchfireError WF_CLI_USAGE */
function readShare(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const share = /^\d{1,2}(?:\.\d{1,3})?%$/.test(text) ? Number(text.slice(0, -1)) : 0;
  if (share > 0) return share;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "--canary takes a percentage above 0% and below 100%, such as 10%",
    actual: text,
  });
}

/**
 * Returns the functions with their code. If one cannot be built or loaded, writes the faults to stderr and returns `undefined`.
 */
async function build(
  folder: string,
  manifests: readonly FunctionManifest[],
): Promise<readonly BuildOutcome[] | undefined> {
  const built = await buildFunctions(folder, manifests);
  return areNone(built.flatMap(({ faults }) => faults)) ? built : undefined;
}

function pack(
  built: readonly BuildOutcome[],
  options: Parameters<typeof packFunction>[3],
  values: ManifestValues | undefined,
): PackedFunction[] | undefined {
  const packed: PackedFunction[] = [];
  const faults: unknown[] = [];
  for (const { manifest, bundle } of built) {
    try {
      if (bundle) packed.push(packFunction(manifest.name, manifestText(manifest, values), bundle, options));
    } catch (error) {
      faults.push(error);
    }
  }
  return areNone(faults) ? packed : undefined;
}
