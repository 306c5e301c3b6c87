import { WatchfireError } from "../../base/errors.ts";
import { type ApiObjects, type AppliedObject, type ClusterObject, type DeployedKind, nameOf } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import { type IndexEntry, readIndex, type SetIdentity } from "../deployed-index.ts";
import { defaultSet, deployedLabel, functionLabel, indexName, labelsOf, setLabel, setOfIndex } from "../names.ts";

/** State of one set in the cluster before a deployment: the objects that it owns, and those that it takes over. */
export interface DeployedState {
  /** ConfigMaps of functions. */
  readonly configMaps: readonly ClusterObject[];
  readonly index: ClusterObject | undefined;
  /** The index of the set `default`, which is the lock of all sets. */
  readonly lock: ClusterObject | undefined;
  /** Functions of the set, and those that it takes over. */
  readonly entries: readonly IndexEntry[];
  /** Functions that were deployed before there were sets. */
  readonly former: {
    /** Taken over by this set. */
    readonly taken: readonly IndexEntry[];
    /** The others; they stay in the set `default`. */
    readonly left: readonly IndexEntry[];
  };
  /** Accounts, roles and bindings, including those printed by `watchfire rbac`. */
  readonly rights: readonly ClusterObject[];
  /** Whether rights were searched in every namespace. */
  readonly everywhere: boolean;
}

/**
 * Reads the current state, and checks that the names of the functions and of all planned objects are free.
 * @throws WatchfireError WF_DEPLOYED_TAKEN if another set has one of the functions, or if one of `planned` exists and is not this
 * runtime's and set's
 * @param codeOnly true if accounts and rights are not looked at
 */
export async function lookBefore(
  api: ApiObjects,
  planned: readonly AppliedObject[],
  names: ReadonlySet<string>,
  identity: SetIdentity,
  codeOnly = false,
): Promise<DeployedState> {
  const { account, namespace, set } = identity;
  const ours = Object.entries(labelsOf(account, namespace))
    .map(([label, value]) => `${label}=${value}`)
    .join(",");
  const configMaps = await api.listConfigMaps(ours, namespace);
  const namespaces = [namespace, ...planned.flatMap(({ metadata }) => metadata.namespace ?? [])];
  const { rights, everywhere } = codeOnly
    ? { rights: [], everywhere: true }
    : await listRights(api, ours, namespace, namespaces);
  const known = new Set([...configMaps, ...rights].map(nameOf));
  const all = [...configMaps, ...rights, ...(await api.find(planned.filter((object) => !known.has(nameOf(object)))))];
  const isIndex = ({ kind, metadata }: ClusterObject) =>
    kind === "ConfigMap" && setOfIndex(account, metadata.name) !== undefined;
  const indexes = all.filter(isIndex);
  const lock = indexes.find(({ metadata }) => metadata.name === indexName(account, defaultSet));
  const index = indexes.find(({ metadata }) => metadata.name === indexName(account, set));
  // Before there were sets, nothing had the label.
  const former = set !== defaultSet && lock && !(setLabel in lock.metadata.labels) ? readEntries(lock) : [];
  const entries = readEntries(index);
  const taken = former.filter(({ name }) => names.has(name));
  const owners = indexes.flatMap((found) => {
    const owner = setOfIndex(account, found.metadata.name) ?? defaultSet;
    const isOther = owner !== set && !(found === lock && former.length > 0);
    return isOther ? readEntries(found).map(({ name }) => [name, owner] as const) : [];
  });
  refuseTaken(all, new Map(owners), { planned, names, identity });
  const isOwn = ({ metadata: { labels } }: ClusterObject) =>
    setLabel in labels ? labels[setLabel] === set : set === defaultSet || names.has(labels[functionLabel] ?? "");
  const own = all.filter((found) => !isIndex(found) && isOwn(found));
  return {
    configMaps: own.filter(({ kind }) => kind === "ConfigMap"),
    index,
    lock,
    entries: [...entries, ...taken.filter(({ name }) => !entries.some((each) => each.name === name))],
    former: { taken, left: former.filter(({ name }) => !names.has(name)) },
    rights: own.filter(({ kind }) => kind !== "ConfigMap"),
    everywhere,
  };
}

/** Whether an earlier deployment created it, so that a later one may delete it. */
export const isDeployed = (found: ClusterObject): boolean => deployedLabel in found.metadata.labels;

interface Wanted {
  readonly planned: readonly AppliedObject[];
  /** Names of the functions. */
  readonly names: ReadonlySet<string>;
  readonly identity: SetIdentity;
}

/** @throws WatchfireError WF_DEPLOYED_TAKEN with every function and object that belongs to somebody else */
function refuseTaken(
  found: readonly ClusterObject[],
  owners: ReadonlyMap<string, string>,
  { planned, names, identity }: Wanted,
): void {
  const wanted = new Set(planned.map(nameOf));
  const faults = [
    ...[...names].flatMap((name) => {
      const owner = owners.get(name);
      return owner === undefined ? [] : [functionFault(name, owner, identity)];
    }),
    ...found.flatMap((object) => {
      if (!wanted.has(nameOf(object))) return [];
      if (!isOurs(object, identity)) return [objectFault(object, identity)];
      const owner = object.metadata.labels[setLabel] ?? identity.set;
      const isNamed = owners.has(object.metadata.labels[functionLabel] ?? "");
      const isLock = setOfIndex(identity.account, object.metadata.name) !== undefined;
      return owner === identity.set || isNamed || isLock ? [] : [setFault(object, owner, identity)];
    }),
  ];
  const [first, ...more] = faults;
  if (first) throw new WatchfireError(first.code, { ...first.detail, more });
}

const isOurs = ({ metadata }: ClusterObject, { account, namespace }: SetIdentity): boolean =>
  Object.entries(labelsOf(account, namespace)).every(([label, value]) => metadata.labels[label] === value);

function functionFault(name: string, owner: string, { namespace, account }: SetIdentity): WatchfireError {
  return new WatchfireError("WF_DEPLOYED_TAKEN", {
    what: `the function ${name} is of the set ${owner} of the runtime ${namespace}/${account}`,
    hint: `rename the function, or deploy it with \`--set ${owner}\` if its folder is that set's`,
  });
}

function objectFault(found: ClusterObject, identity: SetIdentity): WatchfireError {
  const { account, namespace } = identity;
  return new WatchfireError("WF_DEPLOYED_TAKEN", {
    what: `the ${nameOf(found)} exists and does not belong to the runtime ${namespace}/${account}`,
    hint: `rename the function or the runtime's account; to adopt it nevertheless: \`${adopt(found, labelsOf(account, namespace))}\``,
  });
}

/** A deployment that was killed, or may not delete, leaves objects of functions that no index names. */
function setFault(found: ClusterObject, owner: string, { set }: SetIdentity): WatchfireError {
  return new WatchfireError("WF_DEPLOYED_TAKEN", {
    what: `the ${nameOf(found)} is there and is of the set ${owner}`,
    hint: `rename the function; if it is this set's after all: \`${adopt(found, { [setLabel]: set })}\``,
  });
}

/** Returns the command that gives an object these labels. */
function adopt({ kind, metadata }: ClusterObject, labels: Readonly<Record<string, string>>): string {
  const where = metadata.namespace === undefined ? "" : `-n ${metadata.namespace} `;
  const given = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return `kubectl ${where}label ${kind.toLowerCase()} ${metadata.name} --overwrite ${given.join(" ")}`;
}

/** Lists accounts, roles and bindings; `everywhere`: in all namespaces. */
async function listRights(api: ApiObjects, selector: string, home: string, namespaces: readonly string[]) {
  const rights: ClusterObject[] = [...((await api.list("ServiceAccount", selector, home)) ?? [])];
  let everywhere = true;
  for (const kind of ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] as const) {
    const found = await api.list(kind, selector);
    everywhere &&= found !== undefined;
    rights.push(...(found ?? (await listNearby(api, kind, selector, namespaces))));
  }
  return { rights, everywhere };
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
