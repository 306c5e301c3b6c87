import { isDeepStrictEqual } from "node:util";
import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { ApiObjects, type AppliedObject, type ClusterObject, nameOf } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import { type IndexEntry, indexConfigMap, indexData, indexText, signatureOf } from "../deployed-index.ts";
import { type PackedFunction, unpackFunction } from "../packed-function.ts";
import type { SigningKey } from "../signature.ts";
import { type DeployedState, isDeployed, lookBefore } from "./before.ts";
import { DeployLock, isLocked, untilAbandoned } from "./deploy-lock.ts";
import { type Fate, fatesOf } from "./fates.ts";
import { IndexSigner } from "./index-signer.ts";

/**
 * Delay between the writing of new code and the removal of the old code's rights, in milliseconds. The runtime uses new code
 * within a second of its being written, and most handlers end within another few.
 */
const handOverMs = 5_000;

export interface DeployPlan {
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** The runtime's account. */
  readonly account: string;
  /** All functions that are to run; other deployed functions are removed. */
  readonly functions: readonly PackedFunction[];
  /** Their accounts, roles and bindings, in the order in which to apply them. */
  readonly objects: readonly AppliedObject[];
  /** Signs the index. Default: no signature. */
  readonly key?: SigningKey | undefined;
  readonly clock: Clock;
  /** Name of the user who deploys, shown to others who deploy at the same time. */
  readonly holder: string;
  /** Called with the holder's name while waiting for another deployment, or for one that was killed. */
  readonly waiting: (who: string) => void;
}

export interface DeployReport {
  /** Outcome for each function, by name. */
  readonly functions: readonly { readonly name: string; readonly fate: Fate }[];
  /** Deleted objects of earlier deployments, such as `Role team-a/watchfire-greet.watchfire`. */
  readonly deleted: readonly string[];
  /** Whether accounts and rights of earlier deployments were searched in every namespace. */
  readonly prunedEverywhere: boolean;
  /** Whether an unsigned index replaced a signed one. */
  readonly unsigned: boolean;
  /** By function: the text of the previously deployed manifest, if it can be read. */
  readonly manifestsBefore: ReadonlyMap<string, string>;
}

/** Changes that a deployment makes to the cluster. */
interface Steps {
  readonly entries: readonly IndexEntry[];
  /** ConfigMaps of functions that are missing or damaged. */
  readonly missing: readonly AppliedObject[];
  /** Existing objects under the names of those. */
  readonly spoilt: readonly ClusterObject[];
  /** The plan's objects, applied first; roles also keep their present rules, which running functions still need. */
  readonly first: readonly AppliedObject[];
  /** The same roles without the old rules. */
  readonly narrowed: readonly AppliedObject[];
  /** ConfigMaps and rights that are not needed afterwards. */
  readonly superseded: readonly ClusterObject[];
  readonly stale: readonly ClusterObject[];
}

/**
 * Replaces one set of functions by another, under the index's lock, so that only one deployment writes at a time. The index is
 * changed after all of the new set has been written, so that a runtime never sees a partial set. Superseded objects are deleted
 * after that. A deployment that fails earlier deletes what it created. One that is killed leaves the running set intact; the next
 * waits until the lock has expired, and cleans up.
 * @throws WatchfireError WF_DEPLOYED_TAKEN and WF_DEPLOYED_REFUSED, before anything is written if the API server can tell;
 * WF_DEPLOYED_CONFLICT
 */
export async function deploy(plan: DeployPlan): Promise<DeployReport> {
  const { transport, namespace, account, functions, objects, clock } = plan;
  const empty = indexConfigMap(account, namespace, {});
  const api = new ApiObjects(transport);
  const parts = { api, clock, holder: plan.holder };
  await untilAbandoned(parts, empty, plan.waiting);
  const configMaps = functions.map(({ configMap }) => configMap);
  const before = await lookBefore(api, [...objects, ...configMaps, empty], plan);
  const steps = stepsFrom(before, plan);
  const report = {
    functions: fatesOf(before.entries, steps.entries, new Set(steps.missing.map(({ metadata }) => metadata.name))),
    deleted: [...steps.superseded, ...steps.stale].map(nameOf),
    prunedEverywhere: before.everywhere,
    unsigned: false,
    manifestsBefore: manifestsOf(before),
  };
  const signer = plan.key && new IndexSigner(plan.key, plan, clock);
  const old = readConfigMap(before.index);
  if (isDone(before, steps) && (!signer || (old && signer.isSigned(old)))) return report;
  await api.tryApply([...steps.first, ...(steps.spoilt.length === 0 ? steps.missing : [])]);
  const lock = await DeployLock.take(parts, empty, before.index);
  const writer = new ApiObjects(transport, () => lock.held());
  try {
    await bring(writer, before, steps);
    await lock.set(indexData(steps.entries, signer?.after(old)));
    await cleanUp(writer, steps, clock).catch(notAllGone);
  } catch (error) {
    await lock.release().catch(() => undefined);
    throw error;
  }
  await lock.release();
  return { ...report, unsigned: !signer && old !== undefined && signatureOf(old) !== undefined };
}

function stepsFrom(before: DeployedState, { functions, objects }: DeployPlan): Steps {
  const entries = functions.map(({ name, sha256, configMap }) => ({
    name,
    configMap: configMap.metadata.name,
    sha256,
  }));
  const isThere = new Set(before.configMaps.filter((found) => isSound(found, entries)).map(nameOf));
  const configMaps = functions.map(({ configMap }) => configMap);
  const missing = configMaps.filter((configMap) => !isThere.has(nameOf(configMap)));
  const lacking = new Set(missing.map(nameOf));
  const first = objects.map((object) => widened(object, before.rights));
  const wanted = new Set([...objects, ...configMaps, ...(before.index ? [before.index] : [])].map(nameOf));
  return {
    entries,
    missing,
    spoilt: before.configMaps.filter((found) => lacking.has(nameOf(found))),
    first,
    narrowed: objects.filter((object, at) => object !== first[at]),
    superseded: before.configMaps.filter((found) => !wanted.has(nameOf(found))),
    stale: before.rights.filter((found) => isDeployed(found) && !wanted.has(nameOf(found))),
  };
}

/** Whether the cluster already has the wanted state, so that nothing is written. That is not so while the index is locked. */
function isDone({ index, entries, rights }: DeployedState, steps: Steps): boolean {
  const { missing, narrowed, superseded, stale, first } = steps;
  if (!index || isLocked(index)) return false;
  if (indexText(entries) !== indexText(steps.entries)) return false;
  if (missing.length + narrowed.length + superseded.length + stale.length > 0) return false;
  const found = new Map(rights.map((each) => [nameOf(each), each]));
  return first.every((object) => isAs(object, found.get(nameOf(object))));
}

function isAs({ metadata, ...object }: AppliedObject, found: ClusterObject | undefined): boolean {
  if (!found || Object.entries(metadata.labels).some(([label, value]) => found.metadata.labels[label] !== value)) {
    return false;
  }
  const { kind: _, apiVersion: __, ...fields } = object;
  return Object.entries(fields).every(([field, value]) => isDeepStrictEqual(found[field], value));
}

/** Creates what the new set needs, and deletes it again on failure. */
async function bring(writer: ApiObjects, { rights, configMaps }: DeployedState, steps: Steps): Promise<void> {
  const { first, missing, spoilt } = steps;
  const old = new Map([...rights, ...configMaps].map((found) => [nameOf(found), found]));
  const made: ClusterObject[] = [];
  const applied = (found: ClusterObject) => {
    if (!old.has(nameOf(found))) made.push(found);
  };
  try {
    await writer.delete(spoilt);
    // Applies accounts before roles, roles before bindings; those of one kind concurrently.
    for (const [, alike] of Map.groupBy(first, ({ kind }) => kind)) await writer.apply(alike, applied);
    await writer.apply(missing, applied);
  } catch (error) {
    const changed = first.flatMap((object) => {
      const rules = old.get(nameOf(object))?.rules;
      return rules === undefined ? [] : [{ ...object, rules }];
    });
    // Objects that cannot be deleted now carry our labels, so the next deployment deletes them.
    await writer.delete(made.toReversed()).catch(() => undefined);
    await writer.apply(changed).catch(() => undefined);
    throw error;
  }
}

async function cleanUp(writer: ApiObjects, { superseded, stale, narrowed }: Steps, clock: Clock): Promise<void> {
  await writer.delete(superseded);
  if (stale.length + narrowed.length > 0) await pause(clock, handOverMs);
  await writer.apply(narrowed);
  // Deletes bindings before the roles they name, and accounts last.
  await writer.delete(stale.toReversed());
}

function notAllGone(error: unknown): never {
  // After a conflict another deployment's functions run, or soon will.
  if (!(error instanceof WatchfireError) || error.code === "WF_DEPLOYED_CONFLICT") throw error;
  const hint = "the new functions run, and what they superseded is not all gone: do as it says and deploy again";
  throw new WatchfireError(error.code, { ...error.detail, hint });
}

/** Returns the texts of the manifests that the index names, except damaged ones. */
function manifestsOf({ configMaps, entries }: DeployedState): ReadonlyMap<string, string> {
  return new Map(
    entries.flatMap((entry) => {
      const found = configMaps.find(({ metadata }) => metadata.name === entry.configMap);
      if (!found || !isSound(found, [entry])) return [];
      const configMap = readConfigMap(found);
      return configMap ? [[entry.name, unpackFunction(configMap).manifest] as const] : [];
    }),
  );
}

/** Whether a ConfigMap matches the new index. */
function isSound(found: ClusterObject, entries: readonly IndexEntry[]): boolean {
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

/** Returns a role with its present rules in the cluster added; the object itself if there are no others. */
function widened(object: AppliedObject, existing: readonly ClusterObject[]): AppliedObject {
  const found = existing.find((each) => nameOf(each) === nameOf(object));
  const rules = Array.isArray(object.rules) ? object.rules : [];
  const old = Array.isArray(found?.rules) ? found.rules : [];
  const said = new Set(rules.map(canonical));
  const more = old.filter((rule) => !said.has(canonical(rule)));
  return more.length === 0 ? object : { ...object, rules: [...rules, ...more] };
}

/** Returns the same text for equal rules, whatever the order of their fields. */
const canonical = (rule: unknown): string =>
  JSON.stringify(Object.entries(rule ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
