import { WatchfireError } from "../../base/errors.ts";
import type { ApiObjects, AppliedObject, ClusterObject } from "../api-objects.ts";
import { type ConfigMap, readConfigMap } from "../config-map.ts";
import { type IndexEntry, readIndex, revisionOf, type SetIdentity } from "../deployed-index.ts";
import { functionLabel, keptLabelsOf, keptName } from "../names.ts";
import { digestOf, entriesOf, type Revision, readRevision } from "./revision.ts";

/** Most revisions of a set, the current one included. */
const mostRevisions = 10;

/**
 * Limit of what is kept of a set's earlier revisions, in bytes, without what the current one uses: 300 sets at the limit take 1.2
 * GiB of etcd's default quota of 2 GiB, and most sets take a hundredth of it.
 */
const keptLimit = 4 * 1024 * 1024;

/** The revisions of a set, and what is kept of their code. */
export interface SetHistory {
  /** Newest first. */
  readonly revisions: readonly Revision[];
  /** The number of the deployed revision; `undefined` if the index has no record: another version or tool wrote it. */
  readonly current: number | undefined;
  /** Digest of the deployed functions; `undefined` if there is no index that can be read. */
  readonly digest: string | undefined;
  /** The number of the next revision. */
  readonly next: number;
  /** Copies of functions' code, by name. */
  readonly copies: ReadonlyMap<string, ClusterObject>;
  /** Records that cannot be read, and those of deployments that were killed before they changed the index. */
  readonly leftovers: readonly ClusterObject[];
}

/** @throws WatchfireError WF_DEPLOYED_REFUSED */
export async function readHistory(
  api: ApiObjects,
  identity: SetIdentity,
  index: ClusterObject | undefined,
): Promise<SetHistory> {
  const { account, namespace, set } = identity;
  const labels = Object.entries(keptLabelsOf(account, namespace, set)).map(([label, value]) => `${label}=${value}`);
  const found = await api.listConfigMaps(labels.join(","), namespace);
  const [copies, records] = partition(found, ({ metadata }) => functionLabel in metadata.labels);
  const configMap = readConfigMap(index);
  const current = configMap && revisionOf(configMap);
  const digest = configMap && indexDigest(configMap);
  const read = records.map((record) => readRevision(record, identity));
  const isReached = ({ number }: Revision) => current === undefined || number <= current;
  const revisions = read.flatMap((each) => (each && isReached(each) ? each : []));
  const known = new Set(revisions.map((each) => each.configMap));
  return {
    revisions: revisions.sort((a, b) => b.number - a.number),
    current: revisions.find((each) => each.number === current && each.digest === digest)?.number,
    digest,
    next: Math.max(current ?? 0, ...read.map((each) => each?.number ?? 0)) + 1,
    copies: new Map(copies.map((copy) => [copy.metadata.name, copy])),
    leftovers: records.filter((record) => !known.has(record)),
  };
}

/** Changes of what is kept, after the index has changed. */
export interface HistoryChange {
  /** Records to be created, before the index changes. */
  readonly records: readonly AppliedObject[];
  /** Copies to be created, before the code that they are of is deleted. */
  readonly copies: readonly AppliedObject[];
  /** Records and copies that are no longer needed. */
  readonly dropped: readonly ClusterObject[];
  /** Names of the superseded ConfigMaps whose code a copy keeps. */
  readonly moved: ReadonlySet<string>;
}

interface HistoryStep {
  readonly identity: SetIdentity;
  /** Functions of the new revision. */
  readonly entries: readonly IndexEntry[];
  /** ConfigMaps of code that the new revision does not use, by name. */
  readonly superseded: ReadonlyMap<string, ClusterObject>;
}

/**
 * Decides what is kept: the newest revisions, up to a number and a size, and a copy of each function's code that the current one
 * does not use. Revisions with the same code share its copy.
 * @param recorded revisions that the deployment writes, newest first. The newest revision of all is always kept
 */
export function historyAfter(
  history: SetHistory,
  recorded: readonly AppliedObject[],
  { identity, entries, superseded }: HistoryStep,
): HistoryChange {
  const { account, set } = identity;
  const used = new Set(entries.map(({ configMap }) => configMap));
  const kept = new Map<string, AppliedObject | undefined>();
  const retained = new Set<string>();
  const moved = new Set<string>();
  let bytes = 0;
  const written = recorded.map((object) => readRevision(asFound(object), identity));
  for (const revision of [...written, ...history.revisions]) {
    if (!revision) continue;
    const more = new Map<string, AppliedObject | undefined>();
    bytes += bytesOf(revision.configMap);
    for (const entry of entriesOf(revision, account)) {
      const name = keptName(account, set, entry.name, entry.sha256);
      if (used.has(entry.configMap) || kept.has(name) || more.has(name)) continue;
      const copy = history.copies.get(name);
      const code = superseded.get(entry.configMap);
      bytes += bytesOf(copy ?? code);
      if (copy) more.set(name, undefined);
      else if (code) more.set(name, copyOf(code, name, entry.name, identity));
    }
    if (retained.size > 0 && (retained.size >= mostRevisions || bytes > keptLimit)) break;
    retained.add(revision.configMap.metadata.name);
    for (const [name, copy] of more) kept.set(name, copy);
    for (const { configMap } of entriesOf(revision, account)) if (superseded.has(configMap)) moved.add(configMap);
  }
  const records = history.revisions.map(({ configMap }) => configMap);
  return {
    records: recorded.filter(({ metadata }) => retained.has(metadata.name)),
    copies: [...kept.values()].filter((copy) => copy !== undefined),
    dropped: [
      ...history.leftovers,
      ...records.filter(({ metadata }) => !retained.has(metadata.name)),
      ...[...history.copies.values()].filter(({ metadata }) => !kept.has(metadata.name)),
    ],
    moved,
  };
}

/** Returns the change after which nothing of a set is kept. */
export const nothingKept = ({ revisions, copies, leftovers }: SetHistory): HistoryChange => ({
  records: [],
  copies: [],
  dropped: [...leftovers, ...revisions.map(({ configMap }) => configMap), ...copies.values()],
  moved: new Set(),
});

/** `undefined` if the index cannot be read. */
function indexDigest(index: ConfigMap): string | undefined {
  try {
    return digestOf(readIndex(index));
  } catch (error) {
    if (error instanceof WatchfireError) return undefined;
    throw error;
  }
}

function copyOf(code: ClusterObject, name: string, functionName: string, identity: SetIdentity): AppliedObject {
  const { account, namespace, set } = identity;
  const { data = {}, binaryData = {} } = readConfigMap(code) ?? {};
  const labels = { ...keptLabelsOf(account, namespace, set), [functionLabel]: functionName };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, labels },
    immutable: true,
    data,
    binaryData,
  };
}

/** Size of all values, as they are stored. */
function bytesOf(object: ClusterObject | undefined): number {
  const { data = {}, binaryData = {} } = (object && readConfigMap(object)) ?? {};
  return [...Object.values(data), ...Object.values(binaryData)].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** Returns an object as if it were there, so that it can be read. */
const asFound = (object: AppliedObject): ClusterObject => ({
  ...object,
  metadata: { annotations: {}, ...object.metadata, uid: "", resourceVersion: "" },
});

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}
