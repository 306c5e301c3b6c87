import { ConflictError, defineReconciler, NotFoundError } from "@watchfire/sdk";
import type { Reconciler } from "./function.d.ts";

const mark = "mirror.watchfire.dev/from";

export default defineReconciler(async ({ key, object: source }, ctx) => {
  const labelSelector = `mirror.watchfire.dev/secret=${key.name}`;
  const namespaces = ctx.cache.list({ apiVersion: "v1", kind: "Namespace", labelSelector }).items;
  const wanted = new Set<string>();
  for (const { metadata } of source ? namespaces : [])
    if (metadata.name !== key.namespace && !metadata.deletionTimestamp) wanted.add(metadata.name);
  for (const { metadata } of ctx.cache.list({ apiVersion: "v1", kind: "Secret" }).items) {
    const { name, namespace = "", uid, labels } = metadata;
    if (name !== key.name || namespace === key.namespace) continue;
    if (labels?.[mark] !== key.namespace) {
      if (wanted.delete(namespace)) ctx.log.warn("this Secret is not a copy, and stays", { namespace });
    } else if (!wanted.has(namespace)) {
      await ctx.kube
        .delete({ apiVersion: "v1", kind: "Secret", name, namespace }, { preconditions: { uid } })
        .catch(gone);
    }
  }
  const failures: unknown[] = []; // a namespace that refuses its copy holds up no other
  for (const namespace of wanted) {
    const metadata = { name: key.name, namespace, labels: { [mark]: key.namespace ?? "" } };
    const copy = { apiVersion: "v1", kind: "Secret", metadata, type: source?.type, data: source?.data } as const;
    await ctx.kube.apply(copy, { force: true }).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
  ctx.log.info("mirrored", { copies: wanted.size });
}) satisfies Reconciler;

/** Deleted meanwhile, or another object by now. */
function gone(error: unknown): void {
  if (!(error instanceof NotFoundError || error instanceof ConflictError)) throw error;
}
