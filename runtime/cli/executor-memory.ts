import type { KubeTransport } from "../kube/transport.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import { parseSize } from "../manifest/quantity.ts";
import { memoryBeyond, whatIsBeyond } from "../sandbox/container-size.ts";
import type { CheckResult } from "./check.ts";
import { type RuntimeAccount, workloadsOf } from "./workloads.ts";

/** Name of the chart's container in which handlers run. */
const containerName = "executor";

/**
 * Reports functions whose memory limit exceeds that of the container in which the cluster's runtime executes handlers.
 * `unchecked` if no such runtime is installed, or it may not be read.
 */
export async function compareWithContainer(
  { functions, documents }: Pick<LoadedFunctions, "functions" | "documents">,
  transport: KubeTransport,
  runtime: RuntimeAccount,
): Promise<CheckResult> {
  const limit = await containerMemory(transport, runtime);
  if (limit === undefined) {
    const unchecked = [
      `that \`resources.memory\` fits the executors' container of ${runtime.namespace}/${runtime.account}`,
    ];
    return { faults: [], faulty: [], unchecked };
  }
  const faulty = functions.filter(({ resources }) => memoryBeyond(resources.memoryBytes, limit));
  return { faults: faulty.flatMap((manifest) => faultOf(manifest, limit, documents)), faulty, unchecked: [] };
}

function faultOf(manifest: FunctionManifest, limit: number, documents: LoadedFunctions["documents"]) {
  const document = documents.get(manifest.name);
  const what = whatIsBeyond(manifest.resources.memoryBytes, limit);
  const path = ["spec", "resources", "memory"];
  return document ? [faultOfRule({ code: "WF_SANDBOX_CONTAINER_SMALL", path, what }, document)] : [];
}

/** Returns the smallest memory limit of the runtime's executor containers, in bytes. `undefined` if unknown. */
async function containerMemory(transport: KubeTransport, runtime: RuntimeAccount): Promise<number | undefined> {
  const limits = (await workloadsOf(transport, runtime)).flatMap(({ spec }) => {
    const { containers } = spec.template.spec;
    const memory = containers.find(({ name }) => name === containerName)?.resources?.limits?.memory;
    const bytes = memory === undefined ? undefined : parseSize(String(memory));
    return bytes ?? [];
  });
  return limits.length > 0 ? Math.min(...limits) : undefined;
}
