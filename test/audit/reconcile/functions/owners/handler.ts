import { defineReconciler, getOrUndefined, type KubeObject, requeueAfter } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";

/** What an audited object carries: a number that each write raises. */
interface Numbered extends KubeObject {
  metadata?: KubeObject["metadata"] & { annotations?: Record<string, string> };
}
const numberOf = (object: Numbered | undefined): string => object?.metadata?.annotations?.number ?? "gone";

// Says what it saw, before and after it has looked at the children: the auditor compares that with what was written.
export default defineReconciler<V1ConfigMap>(async ({ key, object, causes, redelivered }, ctx) => {
  const { name, namespace } = key;
  const later = object?.data?.later;
  // A function's log takes 200 lines a second: of these there are ten thousand.
  if (later && !causes.some(({ type }) => type === "Requeue")) return requeueAfter(later);
  ctx.log.info("begins", { name, redelivered });
  if (later) return;
  const seen = [numberOf(object as Numbered | undefined)];
  for (const child of ["x", "y"]) {
    const ref = { apiVersion: "v1", kind: "Secret", name: `${name}-${child}`, namespace } as const;
    seen.push(numberOf((await getOrUndefined(ctx.kube, ref)) as Numbered | undefined));
  }
  ctx.log.info("ends", { name, seen });
});
