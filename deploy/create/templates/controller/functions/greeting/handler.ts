import { defineHandler } from "@watchfire/sdk";
import type { V1Greeting } from "../../types/greetings.example.com.ts";

// It brings everything to what the Greeting says: running twice does no harm.
export default defineHandler<V1Greeting>(async (event, ctx) => {
  const { apiVersion, kind, metadata, spec } = event.object;
  const { name, namespace, uid = "", generation } = metadata;
  await ctx.kube.apply({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    data: { message: spec.message },
  });
  const status = { ready: true, observedGeneration: generation };
  await ctx.kube.patchStatus({ apiVersion, kind, name, namespace }, { status });
  ctx.log.info("reconciled", { greeting: `${namespace}/${name}` });
});
