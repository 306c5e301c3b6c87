import { AlreadyExistsError, defineHandler, type KubeObject, NotFoundError } from "@watchfire/sdk";
import type { V1LimitRange, V1NetworkPolicy, V1ResourceQuota } from "@watchfire/sdk/kubernetes";
import type { Handler } from "./function.d.ts";

export default defineHandler(async (event, ctx) => {
  const namespace = event.object.metadata.name;
  if (event.object.metadata.deletionTimestamp) return;
  const metadata = { name: "default", namespace };
  const policy: V1NetworkPolicy = {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata,
    // From the Pods of the namespace alone.
    spec: { podSelector: {}, policyTypes: ["Ingress"], ingress: [{ from: [{ podSelector: {} }] }] },
  };
  const quota: V1ResourceQuota = {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata,
    spec: { hard: { "requests.cpu": "8", "requests.memory": "16Gi", pods: "100" } },
  };
  const limits: V1LimitRange = {
    apiVersion: "v1",
    kind: "LimitRange",
    metadata,
    // The quota refuses a container without requests.
    spec: { limits: [{ type: "Container", defaultRequest: { cpu: "100m", memory: "128Mi" } }] },
  };
  for (const object of [policy, limits, quota]) {
    await ctx.kube.create<KubeObject>(object).catch((error: unknown) => {
      // It is there from an earlier attempt or from the team, or the Namespace was deleted meanwhile.
      if (!(error instanceof AlreadyExistsError || error instanceof NotFoundError)) throw error;
    });
  }
  ctx.log.info("defaults set", { namespace });
}) satisfies Handler;
