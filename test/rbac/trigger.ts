import type { Trigger } from "../../runtime/manifest/function.ts";

/** A trigger on ConfigMaps everywhere, with the given differences. */
export function trigger(more: Partial<Trigger> = {}): Trigger {
  const standard = { name: "t", apiVersion: "v1", kind: "ConfigMap", namespaces: { type: "all" } } as const;
  const selection = { labelSelector: "", fieldSelector: "", events: [], changedFields: [], matchConditions: [] };
  return { ...standard, ...selection, initialEvents: "Deliver", object: "Full", lastBody: "Full", ...more };
}
