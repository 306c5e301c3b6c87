import { defineReconciler, getOrUndefined, requeueAfter } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import { type Numbered, numberOf } from "./numbers.ts";

// Logs what it saw before and after it read the children, for the auditor to compare with what was written.
export default defineReconciler<V1ConfigMap>(async ({ key, object, causes, redelivered }, ctx) => {
  const { name, namespace } = key;
  const later = object?.data?.later;
  // A function's log takes 200 lines a second, and there are ten thousand of these.
  if (later && !causes.some(({ type }) => type === "Requeue")) return requeueAfter(later);
  const number = numberOf(object as Numbered | undefined);
  ctx.log.info("begins", { name, number, redelivered });
  if (later) return;
  const seen = [number];
  for (const child of ["x", "y"]) {
    const ref = { apiVersion: "v1", kind: "Secret", name: `${name}-${child}`, namespace } as const;
    seen.push(numberOf((await getOrUndefined(ctx.kube, ref)) as Numbered | undefined));
  }
  // The data contains the number as well, if the manifest requests it.
  ctx.log.info("ends", { name, seen, data: object?.data?.number ?? "none" });
});
