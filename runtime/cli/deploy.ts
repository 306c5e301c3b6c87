import { resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { deploy as deployAll } from "../catalog/deploy/deploy.ts";
import { manifestText } from "../catalog/manifest-text.ts";
import { deployedLabel } from "../catalog/names.ts";
import { type PackedFunction, packFunction } from "../catalog/packed-function.ts";
import { SigningKey } from "../catalog/signature.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { isAbsent } from "../rbac/comparison.ts";
import { absenceAmong } from "../rbac/namespaces.ts";
import { functionObjects } from "../rbac/objects.ts";
import { type BuildOutcome, buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { Deployment, deployerOf, deploymentOptions } from "./deployment.ts";
import { compareWithContainer } from "./executor-memory.ts";
import { functions, kubeconfig, output } from "./options.ts";
import { allExpressible, knownKinds, readManifests, readRules, rulesOptions, withCluster } from "./rbac.ts";
import { readSet, setNameOf, setOption } from "./set-name.ts";
import { warningsOfStore } from "./store-limits.ts";
import { warn, warningsOfReach } from "./warning.ts";

export const deploy = command({
  name: "deploy",
  summary: "deploys the functions to the cluster, where a runtime started with --deployed runs them",
  options: {
    functions,
    namespace: { value: "NS", summary: "the runtime's namespace; without it: the context's" },
    "service-account": rulesOptions["service-account"],
    store: rulesOptions.store,
    set: setOption,
    ...deploymentOptions,
    sign: { value: "KEY", summary: "signs what is deployed with this ed25519 private key, a PEM file" },
    kubeconfig,
    context: { value: "NAME", summary: "the kubeconfig's context" },
    output: output("json"),
  },
  async run({ options, given }) {
    const set = options.set === undefined ? setNameOf(options.functions, process.cwd()) : readSet(options.set);
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const loaded = await readManifests(options.functions);
    const built = loaded && (await build(options.functions, loaded.functions));
    if (!built) return 1;
    const { functions: manifests } = loaded;
    if (manifests.length === 0) {
      throw new WatchfireError("WF_DEPLOYED_EMPTY", { what: "no function there", place: { file: options.functions } });
    }
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const { namespace = defaultNamespace } = options;
      const rules = readRules({ ...options, namespace }, new Set());
      const kinds = await knownKinds(options.functions, manifests, transport);
      if (!allExpressible(loaded, kinds, rules)) return 1;
      const fitting = await compareWithContainer(loaded, transport, rules);
      if (!told(fitting.faults)) return 1;
      // The folder's name is not part of the content. Built functions already name their files without it.
      const root = isBuilt(options.functions) ? process.cwd() : resolve(options.functions);
      const packed = pack(built, { ...rules, root });
      if (!packed) return 1;
      const warnings = [...warningsOfReach(loaded, rules), ...warningsOfStore(loaded, built, rules.store)];
      for (const { message } of warnings) warn(message);
      const all = manifests.flatMap((manifest) => functionObjects(manifest, kinds, rules));
      const absence = await absenceAmong(transport, namespace, all);
      const objects = all.filter(({ metadata }) => !absence?.namespaces.has(metadata.namespace ?? ""));
      const labelled = objects.map(({ metadata, ...object }) => ({
        ...object,
        metadata: { ...metadata, labels: { ...metadata.labels, [deployedLabel]: "true" } },
      }));
      const deployment = new Deployment({
        ...{ set, given, transport, runtime: rules, packed, manifests },
        json: options.output === "json" ? { namespace, account: rules.account, warnings } : undefined,
        terminal: { input: process.stdin, output: process.stderr },
      });
      const report = await deployAll({
        ...rules,
        ...deployerOf(set),
        transport,
        functions: packed,
        objects: labelled,
        key,
        approve: deployment.approve,
      });
      if (deployment.unwritten !== undefined) {
        if (absence) process.stderr.write(`${absence.fault.message}\n`);
        return deployment.unwritten;
      }
      deployment.print(report);
      deployment.warn(report);
      const runtime = `${namespace}/${rules.account}`;
      process.stderr.write(`deployed the set ${set} for the runtime ${runtime} at ${transport.description}\n`);
      if (await isAbsent(transport, namespace, rules.account)) {
        process.stderr.write(
          `there is no ServiceAccount ${runtime}: the functions run once a runtime with this account is installed\n`,
        );
      }
      if (!absence) return 0;
      // A misspelt namespace must be reported, but a deleted one must not prevent the rest from being deployed.
      process.stderr.write(`${absence.fault.message}\neverything else is deployed\n`);
      return 1;
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
  return told(built.flatMap(({ faults }) => faults)) ? built : undefined;
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
  return told(faults) ? packed : undefined;
}

/** Writes faults to stderr. Returns true if there is no fault. Throws errors that are not the user's fault. */
function told(faults: readonly unknown[]): boolean {
  for (const fault of faults) {
    if (!(fault instanceof WatchfireError)) throw fault;
    process.stderr.write(`${fault.message}\n`);
  }
  return faults.length === 0;
}
