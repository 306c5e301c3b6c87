import { z } from "zod";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";

/** A StatefulSet if checkpoints are on a volume, otherwise a Deployment. */
const kinds = ["statefulsets", "deployments"] as const;

/** The chart's annotation on a workload whose runtime loads the functions of every set. */
const setsAnnotation = "watchfire.dev/sets";

const schema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ annotations: z.record(z.string(), z.string()).default({}) }),
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

/** A workload of the cluster that runs a runtime. */
type Workload = z.output<typeof schema>["items"][number];

/** Identifies a runtime by its account. */
export interface RuntimeAccount {
  readonly namespace: string;
  readonly account: string;
}

/** Returns a runtime's workloads. Empty if they may not be read, or the runtime is not installed. */
export async function workloadsOf(
  transport: KubeTransport,
  { namespace, account }: RuntimeAccount,
): Promise<Workload[]> {
  const found = await Promise.all(kinds.map((plural) => listed(transport, plural, namespace)));
  return found.flat().filter(({ spec }) => spec.template.spec.serviceAccountName === account);
}

/** True if a runtime is installed that is of a version without sets. */
export async function lacksSets(transport: KubeTransport, runtime: RuntimeAccount): Promise<boolean> {
  const workloads = await workloadsOf(transport, runtime);
  return workloads.some(({ metadata }) => !(setsAnnotation in metadata.annotations));
}

async function listed(transport: KubeTransport, plural: string, namespace: string): Promise<Workload[]> {
  const path = resourcePath({ group: "apps", version: "v1", plural, namespaced: true }, namespace);
  try {
    return schema.parse(await transport.json<unknown>({ method: "GET", path })).items;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
    throw error;
  }
}
