import { WatchfireError } from "../../base/errors.ts";
import { type ApiObjects, type AppliedObject, type ClusterObject, type DeployedKind, nameOf } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import { type IndexEntry, readIndex } from "../deployed-index.ts";
import { deployedLabel, indexName, labelsOf } from "../names.ts";

/** State of one runtime's deployment in the cluster before a new one: all objects that carry its labels. */
export interface DeployedState {
  readonly configMaps: readonly ClusterObject[];
  readonly index: ClusterObject | undefined;
  readonly entries: readonly IndexEntry[];
  /** Accounts, roles and bindings, including those printed by `watchfire rbac`. */
  readonly rights: readonly ClusterObject[];
  /** Whether rights were searched in every namespace. */
  readonly everywhere: boolean;
}

interface RuntimeIdentity {
  /** The runtime's account. */
  readonly account: string;
  readonly namespace: string;
}

/**
 * Reads the current state, and checks that all names to be written are free.
 * @throws WatchfireError WF_DEPLOYED_TAKEN if one of `planned` exists and is not this runtime's
 */
export async function lookBefore(
  api: ApiObjects,
  planned: readonly AppliedObject[],
  runtime: RuntimeIdentity,
): Promise<DeployedState> {
  const { account, namespace } = runtime;
  const ours = Object.entries(labelsOf(account, namespace))
    .map(([label, value]) => `${label}=${value}`)
    .join(",");
  const configMaps = await api.list("ConfigMap", ours, namespace);
  if (!configMaps) {
    throw new WatchfireError("WF_DEPLOYED_REFUSED", { what: `listing the ConfigMaps of ${namespace} is not allowed` });
  }
  const rights: ClusterObject[] = [...((await api.list("ServiceAccount", ours, namespace)) ?? [])];
  const namespaces = [namespace, ...planned.flatMap(({ metadata }) => metadata.namespace ?? [])];
  let everywhere = true;
  for (const kind of ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] as const) {
    const found = await api.list(kind, ours);
    everywhere &&= found !== undefined;
    rights.push(...(found ?? (await listNearby(api, kind, ours, namespaces))));
  }
  const known = new Set([...configMaps, ...rights].map(nameOf));
  const others = await api.find(planned.filter((object) => !known.has(nameOf(object))));
  const [taken, ...more] = others.filter((object) => !isOurs(object, runtime)).map((each) => takenFault(each, runtime));
  if (taken) throw new WatchfireError(taken.code, { ...taken.detail, more });
  const all = [...configMaps, ...rights, ...others];
  const index = all.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === indexName(account));
  return {
    configMaps: all.filter(({ kind }) => kind === "ConfigMap"),
    index,
    entries: readEntries(index),
    rights: all.filter(({ kind }) => kind !== "ConfigMap"),
    everywhere,
  };
}

const isOurs = ({ metadata }: ClusterObject, { account, namespace }: RuntimeIdentity): boolean =>
  Object.entries(labelsOf(account, namespace)).every(([label, value]) => metadata.labels[label] === value);

/** Whether an earlier deployment created it, so that a later one may delete it. */
export const isDeployed = (found: ClusterObject): boolean => deployedLabel in found.metadata.labels;

function takenFault(found: ClusterObject, { account, namespace }: RuntimeIdentity): WatchfireError {
  const { kind, metadata } = found;
  const labels = Object.entries(labelsOf(account, namespace)).map(([label, value]) => `${label}=${value}`);
  const where = metadata.namespace === undefined ? "" : `-n ${metadata.namespace} `;
  const adopt = `kubectl ${where}label ${kind.toLowerCase()} ${metadata.name} --overwrite ${labels.join(" ")}`;
  return new WatchfireError("WF_DEPLOYED_TAKEN", {
    what: `the ${nameOf(found)} is there and is not of the runtime ${namespace}/${account}`,
    hint: `rename the function or the runtime's account; if it is this runtime's after all: \`${adopt}\``,
  });
}

/** Used if only some namespaces may be listed. */
async function listNearby(
  api: ApiObjects,
  kind: DeployedKind,
  selector: string,
  namespaces: readonly string[],
): Promise<ClusterObject[]> {
  if (kind.startsWith("Cluster")) return [];
  const lists = await Promise.all([...new Set(namespaces)].map((namespace) => api.list(kind, selector, namespace)));
  return lists.flatMap((list) => list ?? []);
}

/** An unreadable index counts as empty; it is overwritten. */
function readEntries(index: ClusterObject | undefined): readonly IndexEntry[] {
  const configMap = readConfigMap(index);
  if (!configMap) return [];
  try {
    return readIndex(configMap);
  } catch (error) {
    if (error instanceof WatchfireError) return [];
    throw error;
  }
}
