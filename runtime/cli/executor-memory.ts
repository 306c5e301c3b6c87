import { z } from "zod";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { LoadedFunctions } from "../manifest/load.ts";
import { parseSize } from "../manifest/quantity.ts";
import { memoryBeyond, whatIsBeyond } from "../sandbox/container-size.ts";
import type { CheckResult } from "./check.ts";

/** Name of the chart's container in which handlers run. */
const containerName = "executor";

/** Workloads with such a container: a StatefulSet if checkpoints are on a volume, otherwise a Deployment. */
const workloads = ["statefulsets", "deployments"] as const;

const workloadList = z.object({
  items: z.array(
    z.object({
      spec: z.object({
        template: z.object({
          spec: z.object({
            serviceAccountName: z.string().optional(),
            containers: z.array(
              z.object({
                name: z.string(),
                resources: z
                  .object({ limits: z.object({ memory: z.union([z.string(), z.number()]).optional() }).optional() })
                  .optional(),
              }),
            ),
          }),
        }),
      }),
    }),
  ),
});

/** Identifies a runtime by its account. */
export interface RuntimeAccount {
  readonly namespace: string;
  readonly account: string;
}

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
async function containerMemory(
  transport: KubeTransport,
  { namespace, account }: RuntimeAccount,
): Promise<number | undefined> {
  const limits: number[] = [];
  for (const plural of workloads) {
    const items = (await workloadsOf(transport, plural, namespace))?.items ?? [];
    for (const { spec } of items) {
      const { serviceAccountName, containers } = spec.template.spec;
      if (serviceAccountName !== account) continue;
      const memory = containers.find(({ name }) => name === containerName)?.resources?.limits?.memory;
      const bytes = memory === undefined ? undefined : parseSize(String(memory));
      if (bytes !== undefined) limits.push(bytes);
    }
  }
  return limits.length > 0 ? Math.min(...limits) : undefined;
}

/** Returns `undefined` if the workloads may not be read, or the cluster does not serve the kind. */
async function workloadsOf(transport: KubeTransport, plural: string, namespace: string) {
  const path = resourcePath({ group: "apps", version: "v1", plural, namespaced: true }, namespace);
  try {
    return workloadList.parse(await transport.json<unknown>({ method: "GET", path }));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}
