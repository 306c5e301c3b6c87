import {
  defineReconciler,
  ensureFinalizer,
  type KubeObject,
  ownerReference,
  removeFinalizer,
  setCondition,
} from "@watchfire/sdk";

interface Site extends KubeObject {
  spec: { image: string; replicas: number };
  status?: { observedGeneration?: number; conditions?: Parameters<typeof setCondition>[0] };
}
const finalizer = "compare.example/watchfire";
const options = { force: true, skipUnchanged: true };

export default defineReconciler<Site>(async ({ object }, { kube }) => {
  if (!object) return;
  if (object.metadata.deletionTimestamp) return removeFinalizer(kube, object, finalizer);
  const site = await ensureFinalizer(kube, object, finalizer);
  const { image, replicas } = site.spec;
  const { name, namespace, generation } = site.metadata;
  const metadata = { name, namespace, ownerReferences: [ownerReference(site)] };
  const labels = { site: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "site", image }] } };
  await kube.apply({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { image } }, options);
  const spec = { replicas, selector: { matchLabels: labels }, template };
  await kube.apply({ apiVersion: "apps/v1", kind: "Deployment", metadata, spec }, options);
  const ready = { type: "Ready", status: "True", reason: "Kept", message: "all is as it should be" } as const;
  const conditions = setCondition(site.status?.conditions, { ...ready, observedGeneration: generation });
  if (conditions === site.status?.conditions && site.status?.observedGeneration === generation) return;
  await kube.updateStatus({ ...site, status: { observedGeneration: generation, conditions } });
});
