import { type Context, getOrUndefined, type Kube, listAll, NotFoundError } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

/** On a copy: the uid of its source, by which the copies are found. */
const uidLabel = "sync.watchfire.dev/source-uid";
/** On a copy: `namespace/name` of its source, for people. */
const sourceAnnotation = "sync.watchfire.dev/source";

/** The copies of a source, in one namespace or in all. */
export function copiesOf(kube: Kube, source: V1ConfigMap, namespace?: string): Promise<V1ConfigMap[]> {
  const labelSelector = `${uidLabel}=${source.metadata?.uid}`;
  return listAll(kube, { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector });
}

/** Deletes a copy, unless another object has taken its place. */
export async function removeCopy(kube: Kube, copy: V1ConfigMap): Promise<void> {
  const { name = "", namespace, uid } = copy.metadata ?? {};
  try {
    await kube.delete({ apiVersion: "v1", kind: "ConfigMap", name, namespace }, { preconditions: { uid } });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}

/** Makes or renews the copy in one namespace. A ConfigMap that is not a copy of this source is left alone, which an Event says. */
export async function writeCopy(ctx: Context, source: V1ConfigMap, namespace: string): Promise<void> {
  const { name = "", namespace: home, uid = "" } = source.metadata ?? {};
  const wanted = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name,
      namespace,
      labels: { [uidLabel]: uid, "app.kubernetes.io/managed-by": "configmap-sync" },
      annotations: { [sourceAnnotation]: `${home}/${name}` },
    },
    data: source.data,
    binaryData: source.binaryData,
  };

  const found = await getOrUndefined(ctx.kube, { apiVersion: "v1", kind: "ConfigMap", name, namespace });
  if (!found) {
    await ctx.kube.create(wanted);
    ctx.log.info("copied", { source: `${home}/${name}`, into: namespace });
    return;
  }
  if (found.metadata?.labels?.[uidLabel] !== uid) {
    await ctx.events.emit(source, {
      type: "Warning",
      reason: "NotOwned",
      message: `namespace ${namespace} has a ConfigMap ${name} that is not a copy of this one; it is left as it is`,
    });
    return;
  }
  if (sameEntries(found.data, source.data) && sameEntries(found.binaryData, source.binaryData)) return;
  // The version makes the write fail, and be tried again, if somebody changed the copy since.
  await ctx.kube.update({
    ...wanted,
    metadata: { ...wanted.metadata, resourceVersion: found.metadata.resourceVersion },
  });
  ctx.log.info("copy renewed", { source: `${home}/${name}`, in: namespace });
}

function sameEntries(a: Record<string, string> = {}, b: Record<string, string> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
