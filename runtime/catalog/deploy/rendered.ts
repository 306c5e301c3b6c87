import type { Clock } from "../../base/clock.ts";
import { type AppliedObject, nameOf } from "../api-objects.ts";
import { indexConfigMap, indexData, type SetIdentity } from "../deployed-index.ts";
import { setLabel } from "../names.ts";
import type { PackedFunction } from "../packed-function.ts";
import type { SigningKey } from "../signature.ts";
import { IndexSigner } from "./index-signer.ts";

interface SetObjects {
  readonly set: string;
  readonly functions: readonly PackedFunction[];
  /** Accounts, roles and bindings. */
  readonly objects: readonly AppliedObject[];
}

/** Returns the objects and the functions with the set's label on each. */
export function labelled({ set, functions, objects }: SetObjects): Pick<SetObjects, "functions" | "objects"> {
  const inSet = ({ metadata, ...object }: AppliedObject): AppliedObject => ({
    ...object,
    metadata: { ...metadata, labels: { ...metadata.labels, [setLabel]: set } },
  });
  return {
    objects: objects.map(inSet),
    functions: functions.map((each) => ({ ...each, configMap: inSet(each.configMap) })),
  };
}

/** The order of kinds: what others refer to comes first. */
const kindOrder = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap"];

/**
 * Returns all objects of a set, for somebody else to apply: sorted by kind and name, with the index last. The ConfigMaps of
 * functions are mutable here: another version of zlib gives other bytes for the same content, which has the same name.
 */
export function renderedObjects(
  plan: SetIdentity & SetObjects & { readonly key: SigningKey | undefined; readonly clock: Pick<Clock, "now"> },
): AppliedObject[] {
  const { functions, objects } = labelled(plan);
  const entries = functions.map(({ name, sha256, configMap }) => ({
    name,
    configMap: configMap.metadata.name,
    sha256,
  }));
  const sign = plan.key && new IndexSigner(plan.key, plan, plan.clock).after(undefined);
  const code = functions.map(({ configMap: { immutable: _, ...configMap } }): AppliedObject => configMap);
  const rank = ({ kind }: AppliedObject) => kindOrder.indexOf(kind);
  const sorted = [...objects, ...code].sort((a, b) => rank(a) - rank(b) || (nameOf(a) < nameOf(b) ? -1 : 1));
  return [...sorted, indexConfigMap(plan, indexData(entries, sign))];
}
