import type { CachedRead, FunctionManifest } from "../../runtime/manifest/function.ts";
import { manifestOf } from "../access/api-server.ts";
import { trigger } from "../rbac/trigger.ts";

/** A read of all ConfigMaps, with the given differences. */
export const read = (more: Partial<CachedRead> = {}): CachedRead => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  namespaces: { type: "all" },
  labelSelector: "",
  fieldSelector: "",
  object: "Full",
  indexes: [],
  ...more,
});

/** A function `f` with a trigger on all ConfigMaps, and these reads. */
export const reading = (reads: readonly CachedRead[], more: Partial<FunctionManifest> = {}): FunctionManifest =>
  manifestOf({ triggers: [trigger({ name: "t" })], reads, ...more });
