import { deployedLabel } from "../catalog/names.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "../rbac/kinds.ts";
import { functionObjects } from "../rbac/objects.ts";
import type { RulesOptions } from "../rbac/rules.ts";

/** Returns the accounts, roles and bindings of functions, marked as created by a deployment, which later ones may delete. */
export const deployedRbac = (manifests: readonly FunctionManifest[], kinds: KnownKinds, rules: RulesOptions) =>
  manifests
    .flatMap((manifest) => functionObjects(manifest, kinds, rules))
    .map(({ metadata, ...object }) => ({
      ...object,
      metadata: { ...metadata, labels: { ...metadata.labels, [deployedLabel]: "true" } },
    }));
