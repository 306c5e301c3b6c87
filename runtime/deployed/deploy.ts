import { type Clock, pause } from "../clock.ts";
import { WatchfireError } from "../errors.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { ApiObjects, type AppliedObject, type DeployedKind, type FoundObject, nameOf } from "./api-objects.ts";
import { readConfigMap } from "./config-map.ts";
import { type IndexEntry, indexConfigMap, indexText, readIndex } from "./deployed-index.ts";
import { deployedLabel, indexName, selectorOf } from "./names.ts";
import { type PackedFunction, unpackFunction } from "./packed-function.ts";

/**
 * Between the new code's being there and the old one's rights being taken away, in milliseconds: the runtime takes new
 * code up within a second of its being written, and handlers mostly end within another few.
 */
const handOverMs = 5_000;

export interface DeployPlan {
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** The runtime's account. */
  readonly account: string;
  /** All functions that are to run; others that were deployed are removed. */
  readonly functions: readonly PackedFunction[];
  /** Their accounts, roles and bindings, in the order in which to apply them. */
  readonly objects: readonly AppliedObject[];
  readonly clock: Clock;
}

export type Fate = "created" | "changed" | "unchanged" | "restored" | "removed";

export interface DeployReport {
  /** What became of each function, by name. */
  readonly functions: readonly { readonly name: string; readonly fate: Fate }[];
  /** Objects of earlier deployments that were deleted, such as `Role team-a/watchfire-greet.watchfire`. */
  readonly deleted: readonly string[];
  /** Whether accounts and rights of earlier deployments were looked for in every namespace. */
  readonly prunedEverywhere: boolean;
}

/** What is there of earlier deployments. */
interface Before {
  readonly configMaps: readonly FoundObject[];
  readonly index: FoundObject | undefined;
  readonly entries: readonly IndexEntry[];
  readonly rights: readonly FoundObject[];
  readonly everywhere: boolean;
}

/**
 * Puts a set of functions in the place of the one before. The index is written after all that it names, so that a
 * runtime never sees a part; what is superseded goes after that. One that fails or is killed on the way leaves what
 * runs as it is, and the next one cleans up after it.
 * @throws WatchfireError WF_DEPLOYED_REFUSED, WF_DEPLOYED_CONFLICT; the former before anything is changed where the API server can tell
 */
export async function deploy(plan: DeployPlan): Promise<DeployReport> {
  const { transport, namespace, account, functions, objects, clock } = plan;
  const api = new ApiObjects(transport);
  const before = await look(api, plan);
  const entries = functions.map(({ name, sha256, configMap }) => ({
    name,
    configMap: configMap.metadata.name,
    sha256,
  }));
  const sound = before.configMaps.filter((found) => isSound(found, entries));
  const isThere = new Set(sound.map(({ metadata }) => metadata.name));
  const missing = functions.map(({ configMap }) => configMap).filter(({ metadata }) => !isThere.has(metadata.name));
  const spoilt = before.configMaps.filter(
    ({ metadata }) => !isThere.has(metadata.name) && missing.some(({ metadata: { name } }) => name === metadata.name),
  );

  const first = objects.map((object) => widened(object, before.rights));
  // A binding is refused to all but administrators while its role is not there.
  const judged = first.filter(({ kind }) => !kind.endsWith("Binding"));
  await api.apply([...judged, ...(spoilt.length === 0 ? missing : [])], { dryRun: true });
  await api.delete(spoilt);
  await applyInOrder(api, first);
  await api.apply(missing);
  const index = indexConfigMap(account, namespace, entries);
  if (indexText(before.entries) !== indexText(entries) || !before.index) {
    await api.replace(index, before.index && readConfigMap(before.index)?.metadata.resourceVersion);
  }
  await restore(api, plan);

  const wanted = new Set([...objects, ...functions.map(({ configMap }) => configMap), index].map(nameOf));
  const superseded = before.configMaps.filter((found) => !wanted.has(nameOf(found)));
  await api.delete(superseded);
  const stale = before.rights.filter((found) => !wanted.has(nameOf(found)));
  const narrowed = objects.filter((object, at) => object !== first[at]);
  if (stale.length + narrowed.length > 0) await pause(clock, handOverMs);
  await api.apply(narrowed);
  // Bindings before the roles they name, accounts last.
  await api.delete(stale.toReversed());
  return {
    functions: fates(before.entries, entries, new Set(missing.map(({ metadata }) => metadata.name))),
    deleted: [...superseded, ...stale].map(nameOf),
    prunedEverywhere: before.everywhere,
  };
}

async function look(api: ApiObjects, { namespace, account, objects }: DeployPlan): Promise<Before> {
  const configMaps = await api.list("ConfigMap", selectorOf(account), namespace);
  if (!configMaps) {
    throw new WatchfireError("WF_DEPLOYED_REFUSED", { what: `listing the ConfigMaps of ${namespace} is not allowed` });
  }
  const index = configMaps.find(({ metadata }) => metadata.name === indexName(account));
  const ours = `${selectorOf(account)},watchfire.dev/namespace=${namespace},${deployedLabel}`;
  const rights: FoundObject[] = [...((await api.list("ServiceAccount", ours, namespace)) ?? [])];
  let everywhere = true;
  for (const kind of ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] as const) {
    const found = await api.list(kind, ours);
    everywhere &&= found !== undefined;
    rights.push(...(found ?? (await listNearby(api, kind, ours, [namespace, ...namespacesOf(objects)]))));
  }
  return { configMaps, index, entries: readEntries(index), rights, everywhere };
}

/** Where only some namespaces may be looked into. */
async function listNearby(
  api: ApiObjects,
  kind: DeployedKind,
  selector: string,
  namespaces: readonly string[],
): Promise<FoundObject[]> {
  if (kind.startsWith("Cluster")) return [];
  const lists = await Promise.all([...new Set(namespaces)].map((namespace) => api.list(kind, selector, namespace)));
  return lists.flatMap((list) => list ?? []);
}

const namespacesOf = (objects: readonly AppliedObject[]): string[] =>
  objects.flatMap(({ metadata }) => metadata.namespace ?? []);

/** An index that cannot be read names nothing; it is overwritten. */
function readEntries(index: FoundObject | undefined): readonly IndexEntry[] {
  const configMap = readConfigMap(index);
  if (!configMap) return [];
  try {
    return readIndex(configMap);
  } catch (error) {
    if (error instanceof WatchfireError) return [];
    throw error;
  }
}

/** Whether a ConfigMap holds what the new index says of it. */
function isSound(found: FoundObject, entries: readonly IndexEntry[]): boolean {
  const entry = entries.find(({ configMap }) => configMap === found.metadata.name);
  const configMap = entry && readConfigMap(found);
  if (!configMap) return false;
  try {
    return unpackFunction(configMap).sha256 === entry.sha256;
  } catch (error) {
    if (error instanceof WatchfireError) return false;
    throw error;
  }
}

/** A role with the rules it has in the cluster as well: what runs still needs them. The object itself where it has no other. */
function widened(object: AppliedObject, existing: readonly FoundObject[]): AppliedObject {
  const found = existing.find((each) => nameOf(each) === nameOf(object));
  const rules = Array.isArray(object.rules) ? object.rules : [];
  const old = Array.isArray(found?.rules) ? found.rules : [];
  const said = new Set(rules.map(canonical));
  const more = old.filter((rule) => !said.has(canonical(rule)));
  return more.length === 0 ? object : { ...object, rules: [...rules, ...more] };
}

/** The same text for the same rule, in whichever order a server gives its fields. */
const canonical = (rule: unknown): string =>
  JSON.stringify(Object.entries(rule ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Accounts before roles, roles before bindings; those of one kind at once. */
async function applyInOrder(api: ApiObjects, objects: readonly AppliedObject[]): Promise<void> {
  for (const [, alike] of Map.groupBy(objects, ({ kind }) => kind)) await api.apply(alike);
}

/** Writes again what another deployment, which was cleaning up meanwhile, took for superseded. */
async function restore(api: ApiObjects, { namespace, account, functions }: DeployPlan): Promise<void> {
  const there = (await api.list("ConfigMap", selectorOf(account), namespace)) ?? [];
  const names = new Set(there.map(({ metadata }) => metadata.name));
  await api.apply(functions.map(({ configMap }) => configMap).filter(({ metadata }) => !names.has(metadata.name)));
}

function fates(
  before: readonly IndexEntry[],
  now: readonly IndexEntry[],
  written: ReadonlySet<string>,
): DeployReport["functions"] {
  const old = new Map(before.map((entry) => [entry.name, entry.sha256]));
  const names = new Set(now.map(({ name }) => name));
  const fateOf = ({ name, sha256, configMap }: IndexEntry): Fate => {
    if (!old.has(name)) return "created";
    if (old.get(name) !== sha256) return "changed";
    return written.has(configMap) ? "restored" : "unchanged";
  };
  return [
    ...now.map((entry) => ({ name: entry.name, fate: fateOf(entry) })),
    ...before.filter(({ name }) => !names.has(name)).map(({ name }) => ({ name, fate: "removed" as const })),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}
