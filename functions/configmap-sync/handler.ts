import type { Stored } from "@watchfire/sdk";
import { AlreadyExistsError, defineHandler, InvalidError, listAll } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import type { Context, Handler } from "./function.d.ts";

const config = { apiVersion: "v1", kind: "ConfigMap" } as const;
const [label, annotation] = ["sync.watchfire.dev/source-uid", "sync.watchfire.dev/namespaces"];

export default defineHandler(async (event, ctx) => {
  const { name, namespace, labels } = event.object.metadata;
  const copy = event.trigger === "copies" ? event.object : undefined;
  const known = ctx.cache.list(config).items.filter(({ metadata: { uid } }) => !copy || uid === labels?.[label]);
  if (copy && event.type === "Modified" && known.every((source) => textOf(source) === textOf(copy))) return; // intact
  const failures: unknown[] = []; // a namespace that refuses its copy does not affect the others
  if (event.trigger === "sources") failures.push(...(await sync(event.object, ctx, event.type === "Deleted")));
  else for (const source of known) failures.push(...(await sync(source, ctx, false, copy ? namespace : name)));
  if (failures.length > 0) throw failures[0];
}) satisfies Handler;

/** Updates the copies of a source, in all namespaces or in one. Returns the errors. */
async function sync(source: Stored<V1ConfigMap>, { kube, cache, events }: Context, isGone: boolean, place?: string) {
  const { data, binaryData, metadata: from } = source;
  const labelSelector = isGone ? "" : from.annotations?.[annotation]?.trim();
  const warn = (reason: string, message: string) => events.emit(source, { type: "Warning", reason, message });
  if (!labelSelector && !isGone) await warn("NoNamespaces", `give it ${annotation}: a label selector, such as team=a`);
  const wanted = new Set<string>();
  try {
    const query = { apiVersion: "v1", kind: "Namespace", labelSelector, ...(place && { index: { place } }) } as const;
    for (const { metadata } of labelSelector ? cache.list(query).items : [])
      if (!metadata.deletionTimestamp && metadata.name !== from.namespace) wanted.add(metadata.name);
  } catch (error) {
    if (!(error instanceof InvalidError)) throw error;
    await warn("BadSelector", `annotation ${annotation} is not a label selector: ${error.message}`);
    return []; // existing copies stay until the source can be read
  }
  const { name, uid } = from;
  const selectors = { labelSelector: `${label}=${uid}`, fieldSelector: `metadata.name=${name}` };
  const copies = await listAll(kube, { ...config, ...selectors, namespace: place });
  const failures: unknown[] = [];
  for (const namespace of new Set([...wanted, ...copies.map(({ metadata }) => metadata.namespace ?? "")])) {
    const copy = copies.find(({ metadata }) => metadata.namespace === namespace);
    const { resourceVersion, uid: own } = copy?.metadata ?? {}; // a copy that has changed since is not written
    const labels = { [label]: uid, "app.kubernetes.io/managed-by": "configmap-sync" };
    const annotations = { "sync.watchfire.dev/source": `${from.namespace}/${name}` };
    const target = { ...config, metadata: { name, namespace, resourceVersion, labels, annotations } };
    try {
      if (!wanted.has(namespace)) await kube.delete({ ...config, name, namespace }, { preconditions: { uid: own } });
      else if (!copy) await kube.create({ ...target, data, binaryData });
      else if (textOf(copy) !== textOf(source)) await kube.update({ ...target, data, binaryData });
    } catch (error) {
      const message = `namespace ${namespace} has a ConfigMap ${name} that is not a copy of this one; it is left as it is`;
      if (error instanceof AlreadyExistsError) await warn("NotOwned", message);
      else failures.push(error);
    }
  }
  return failures;
}

const textOf = ({ data = {}, binaryData = {} }: V1ConfigMap) =>
  JSON.stringify([data, binaryData].map((each) => Object.entries(each).sort()));
