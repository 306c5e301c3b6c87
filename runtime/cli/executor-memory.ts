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

/** As the chart calls the container in which handlers run. */
const containerName = "executor";

/** What has such a container: a StatefulSet where positions are on a volume, else a Deployment. */
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

/** A runtime by the account that it runs as. */
export interface RuntimeAccount {
  readonly namespace: string;
  readonly account: string;
}

/**
 * What functions ask for beyond the memory of the container in which the runtime of a cluster runs handlers. `unchecked` where no such
 * runtime is installed, or reading it is not allowed.
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

/** The least memory limit of the runtime's executors' containers, in bytes; undefined where none is known. */
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

/** Undefined where reading them is not allowed, and where the cluster has no such kind. */
async function workloadsOf(transport: KubeTransport, plural: string, namespace: string) {
  const path = resourcePath({ group: "apps", version: "v1", plural, namespaced: true }, namespace);
  try {
    return workloadList.parse(await transport.json<unknown>({ method: "GET", path }));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}
