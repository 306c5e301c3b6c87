import { defineReconciler, ownerReference } from "@watchfire/sdk";
import type { Reconciler } from "./function.d.ts";

// It brings everything to what the Greeting says: running twice does no harm.
export default defineReconciler(async ({ key, object: greeting, causes }, ctx) => {
  if (!greeting) return; // its ConfigMap goes with it, by the owner reference
  const { message } = greeting.spec;
  const metadata = { ...key, ownerReferences: [ownerReference(greeting)] };
  await ctx.kube.apply({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { message } }, { force: true });
  const { apiVersion, kind } = greeting;
  const status = { ready: true, observedGeneration: greeting.metadata.generation };
  await ctx.kube.patchStatus({ apiVersion, kind, ...key }, { status });
  ctx.log.info("reconciled", { causes });
}) satisfies Reconciler;
