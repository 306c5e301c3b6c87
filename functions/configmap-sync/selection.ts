import { type Context, InvalidError, listAll } from "@watchfire/sdk";
import type { V1ConfigMap, V1Namespace } from "@watchfire/sdk/kubernetes";

const annotation = "sync.watchfire.dev/namespaces";

/**
 * The namespaces that a source's annotation selects, without its own and without those being deleted; with `only`, that one or none.
 * Undefined where the selector cannot be read; the source's owner is told by an Event.
 */
export async function selectedNamespaces(
  ctx: Context,
  source: V1ConfigMap,
  only?: string,
): Promise<string[] | undefined> {
  const labelSelector = source.metadata?.annotations?.[annotation]?.trim();
  if (!labelSelector) {
    await ctx.events.emit(source, {
      type: "Warning",
      reason: "NoNamespaces",
      message: `annotation ${annotation} is missing or empty; give it a label selector of namespaces, such as team=a, or kubernetes.io/metadata.name for all`,
    });
    return [];
  }
  try {
    const fieldSelector = only === undefined ? undefined : `metadata.name=${only}`;
    const query = { apiVersion: "v1", kind: "Namespace", labelSelector, fieldSelector };
    return (await listAll<V1Namespace>(ctx.kube, query))
      .filter((namespace) => !namespace.metadata?.deletionTimestamp)
      .map((namespace) => namespace.metadata?.name ?? "")
      .filter((name) => name !== source.metadata?.namespace);
  } catch (error) {
    if (!(error instanceof InvalidError)) throw error;
    await ctx.events.emit(source, {
      type: "Warning",
      reason: "BadSelector",
      message: `annotation ${annotation} is not a label selector: ${error.message}`,
    });
    return undefined;
  }
}
