import { dirname, resolve } from "node:path";
import type { Bundle } from "../bundle/bundle.ts";
import { bundleFunction } from "../bundle/bundle-function.ts";
import { systemClock } from "../clock.ts";
import { type DeployReport, deploy as deployAll } from "../deployed/deploy.ts";
import { manifestText } from "../deployed/manifest-text.ts";
import { deployedLabel } from "../deployed/names.ts";
import { type PackedFunction, packFunction } from "../deployed/packed-function.ts";
import { WatchfireError } from "../errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { functionObjects } from "../rbac/objects.ts";
import { command } from "./command.ts";
import { functions } from "./options.ts";
import { expressible, knownKinds, readManifests, readRules, rulesOptions, withCluster } from "./rbac.ts";

export const deploy = command({
  name: "deploy",
  summary: "brings the functions into the cluster, where a runtime started with --deployed takes them up",
  options: {
    functions,
    namespace: { value: "NS", summary: "the runtime's namespace; without it: the context's" },
    "service-account": rulesOptions["service-account"],
    kubeconfig: { value: "FILE", summary: "without it: KUBECONFIG, then ~/.kube/config" },
    context: { value: "NAME", summary: "the kubeconfig's context" },
  },
  async run({ options }) {
    const manifests = await readManifests(options.functions);
    const built = manifests && (await build(manifests));
    if (!built) return 1;
    if (manifests.length === 0) {
      throw new WatchfireError("WF_DEPLOYED_EMPTY", { what: "no function there", place: { file: options.functions } });
    }
    return withCluster(options, async ({ transport, defaultNamespace }) => {
      const { namespace = defaultNamespace } = options;
      const rules = readRules({ ...options, namespace, store: "sqlite" }, new Set());
      const kinds = await knownKinds(options.functions, manifests, transport);
      if (!expressible(manifests, kinds, rules)) return 1;
      const packed = pack(manifests, built, { ...rules, root: dirname(resolve(options.functions)) });
      if (!packed) return 1;
      const objects = manifests.flatMap((manifest) => functionObjects(manifest, kinds, rules));
      const labelled = objects.map(({ metadata, ...object }) => ({
        ...object,
        metadata: { ...metadata, labels: { ...metadata.labels, [deployedLabel]: "true" } },
      }));
      const report = await deployAll({ ...rules, transport, functions: packed, objects: labelled, clock: systemClock });
      process.stdout.write(describe(report, packed));
      return 0;
    });
  },
});

/** Every function's code; undefined, and the faults on stderr, where one cannot be built. */
async function build(manifests: readonly FunctionManifest[]): Promise<ReadonlyMap<string, Bundle> | undefined> {
  const built = new Map<string, Bundle>();
  const results = await Promise.allSettled(
    manifests.map(async (manifest) => built.set(manifest.name, await bundleFunction(manifest))),
  );
  const good = report(results.flatMap((result) => (result.status === "rejected" ? [result.reason] : [])));
  return good ? built : undefined;
}

function pack(
  manifests: readonly FunctionManifest[],
  built: ReadonlyMap<string, Bundle>,
  options: Parameters<typeof packFunction>[3],
): PackedFunction[] | undefined {
  const packed: PackedFunction[] = [];
  const faults: unknown[] = [];
  for (const manifest of manifests) {
    const bundle = built.get(manifest.name);
    try {
      if (bundle) packed.push(packFunction(manifest.name, manifestText(manifest), bundle, options));
    } catch (error) {
      faults.push(error);
    }
  }
  return report(faults) ? packed : undefined;
}

/** Writes faults to stderr; whether there were none. What is no fault of the user's is thrown. */
function report(faults: readonly unknown[]): boolean {
  for (const fault of faults) {
    if (!(fault instanceof WatchfireError)) throw fault;
    process.stderr.write(`${fault.message}\n`);
  }
  return faults.length === 0;
}

function describe({ functions: fates, deleted, prunedEverywhere }: DeployReport, packed: readonly PackedFunction[]) {
  const width = Math.max(...fates.map(({ name }) => name.length));
  const rows = fates.map(({ name, fate }) => {
    const of = packed.find((each) => each.name === name);
    const size = of ? `  ${of.configMap.metadata.name}  ${Math.ceil(of.bytes / 1024)} KiB` : "";
    const without = of?.withoutSourceMap ? ", without its source map, which did not fit" : "";
    return `${name.padEnd(width)}  ${fate.padEnd(9)}${size}${without}`.trimEnd();
  });
  const pruned = deleted.map((name) => `deleted ${name}`);
  const partly = prunedEverywhere
    ? []
    : ["rights in other namespaces were not looked for: listing them is not allowed"];
  return [...rows, ...pruned, ...partly, ""].join("\n");
}
