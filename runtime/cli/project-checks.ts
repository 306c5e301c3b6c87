import { dirname, relative, resolve, sep } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import { Discovery } from "../kube/discovery.ts";
import { isBuilt } from "../manifest/built.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import { definedResources } from "../rbac/kinds.ts";
import { servedFaults } from "../rbac/served.ts";
import { checkTypes } from "../types/handler-types.ts";
import type { BuildOutcome } from "./built-functions.ts";
import type { CheckResult } from "./check.ts";
import { compareWithContainer } from "./executor-memory.ts";
import { withCluster } from "./rbac.ts";
import type { RuntimeAccount } from "./workloads.ts";

/**
 * Checks the names in manifests against what a cluster serves, and against the `runtime` there if it is known. Throws the errors
 * of `withCluster`.
 */
export async function compareWithCluster(
  folder: string,
  loaded: LoadedFunctions,
  cluster: { readonly kubeconfig: string | undefined; readonly context: string | undefined },
  given: ReadonlySet<string>,
  runtime: RuntimeAccount | undefined,
): Promise<CheckResult> {
  if (!given.has("kubeconfig") && !given.has("context")) {
    const unchecked = ["that a cluster serves the kinds and resources (name one with --context or --kubeconfig)"];
    return { faults: [], faulty: [], unchecked };
  }
  const { functions, documents } = loaded;
  return withCluster(cluster, async ({ transport }) => {
    const discovery = new Discovery(transport, systemClock);
    const defined = definedResources(folder, functions);
    const found = await Promise.all(
      functions.map(async (manifest) => ({ manifest, rules: await servedFaults(manifest, discovery, defined) })),
    );
    const faults = found.flatMap(({ manifest, rules }) => {
      const document = documents.get(manifest.name);
      return document ? rules.map((rule) => faultOfRule(rule, document)) : [];
    });
    const faulty = found.filter(({ rules }) => rules.length > 0).map(({ manifest }) => manifest);
    const fitting = runtime && (await compareWithContainer(loaded, transport, runtime));
    return {
      faults: [...faults, ...(fitting?.faults ?? [])],
      faulty: [...faulty, ...(fitting?.faulty ?? [])],
      unchecked: [
        "that the accounts are granted these permissions (`watchfire doctor` does)",
        ...(fitting?.unchecked ?? []),
      ],
    };
  });
}

/** Checks the types of the built functions. Those that could not be built have been reported already. */
export async function compareWithTypes(folder: string, built: readonly BuildOutcome[]): Promise<CheckResult> {
  if (isBuilt(folder)) return { faults: [], faulty: [], unchecked: ["types, since the functions are built"] };
  const whole = built.filter(({ bundle }) => bundle !== undefined).map(({ manifest }) => manifest);
  const { faults, unchecked } = await checkTypes(
    folder,
    whole.map(({ handler }) => relative(process.cwd(), handler)),
    process.cwd(),
  );
  const broken = built.filter(({ bundle }) => bundle === undefined).map(({ manifest }) => manifest);
  const isOf = (fault: WatchfireError, { handler }: FunctionManifest): boolean =>
    resolve(fault.detail.place?.file ?? "").startsWith(`${dirname(resolve(handler))}${sep}`);
  return {
    faults: faults.filter((fault) => !broken.some((manifest) => isOf(fault, manifest))),
    faulty: whole.filter((manifest) => faults.some((fault) => isOf(fault, manifest))),
    unchecked,
  };
}
