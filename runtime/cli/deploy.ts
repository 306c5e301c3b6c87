import { resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { manifestText } from "../catalog/manifest-text.ts";
import { type PackedFunction, packFunction } from "../catalog/packed-function.ts";
import { SigningKey } from "../catalog/signature.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { type BuildOutcome, buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { areNone, deploySet, messageOption, noteOf, readMessage } from "./deploy-set.ts";
import { deploymentOptions } from "./deployment.ts";
import { functions, kubeconfig, output } from "./options.ts";
import { knownKinds, readManifests, readRules, rulesOptions, withCluster } from "./rbac.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";

export const deploy = command({
  name: "deploy",
  summary: "brings the functions into the cluster, where a runtime started with --deployed takes them up",
  options: {
    functions,
    namespace: { value: "NS", summary: "the runtime's namespace; without it: the context's" },
    "service-account": rulesOptions["service-account"],
    store: rulesOptions.store,
    set: setOption,
    message: messageOption,
    ...deploymentOptions,
    sign: { value: "KEY", summary: "signs what is deployed with this ed25519 private key, a PEM file" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options, given }) {
    const set = options.set === undefined ? setNameOf(options.functions, process.cwd()) : readSet(options.set);
    const message = readMessage(options.message ?? "");
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const loaded = await readManifests(options.functions);
    const built = loaded && (await build(options.functions, loaded.functions));
    if (!built) return 1;
    if (loaded.functions.length === 0) {
      throw new WatchfireError("WF_DEPLOYED_EMPTY", { what: "no function there", place: { file: options.functions } });
    }
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const { namespace = defaultNamespace } = options;
      const rules = readRules({ ...options, namespace }, new Set());
      const kinds = await knownKinds(options.functions, loaded.functions, transport);
      // The folder's name is not part of the content. Built functions already name their files without it.
      const root = isBuilt(options.functions) ? process.cwd() : resolve(options.functions);
      const packed = pack(built, { ...rules, root });
      if (!packed) return 1;
      const note = await noteOf(transport, options.functions, message);
      const isJson = options.output === "json";
      return deploySet({ loaded, built, packed }, { set, rules, kinds, transport, given, key, note, isJson });
    });
  },
});

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
): PackedFunction[] | undefined {
  const packed: PackedFunction[] = [];
  const faults: unknown[] = [];
  for (const { manifest, bundle } of built) {
    try {
      if (bundle) packed.push(packFunction(manifest.name, manifestText(manifest), bundle, options));
    } catch (error) {
      faults.push(error);
    }
  }
  return areNone(faults) ? packed : undefined;
}
