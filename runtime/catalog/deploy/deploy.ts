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
 * Milliseconds between the arrival of new code and the end of the old code's rights. The runtime takes new code up
 * within a second of its being written, and handlers mostly end within another few.
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
  /** Signs the index. Default: it is not signed. */
  readonly key?: SigningKey | undefined;
  readonly clock: Clock;
  /** Who deploys, for whoever else would at the same time. */
  readonly holder: string;
  /** Told when somebody else deploys, or was killed while deploying, and this one waits. */
  readonly waiting: (who: string) => void;
}

export interface DeployReport {
  /** What became of each function, by name. */
  readonly functions: readonly { readonly name: string; readonly fate: Fate }[];
  /** Objects of earlier deployments that were deleted, such as `Role team-a/watchfire-greet.watchfire`. */
  readonly deleted: readonly string[];
  /** Whether accounts and rights of earlier deployments were looked for in every namespace. */
  readonly prunedEverywhere: boolean;
  /** Whether a signed index was replaced by one that is not. */
  readonly unsigned: boolean;
  /** By function: the text of the manifest that was deployed before, where it can be read. */
  readonly manifestsBefore: ReadonlyMap<string, string>;
}

/** What a deployment does to the cluster. */
interface Steps {
  readonly entries: readonly IndexEntry[];
  /** Functions' ConfigMaps that are not there, or not as they were written. */
  readonly missing: readonly AppliedObject[];
  /** Of those, what lies under their names. */
  readonly spoilt: readonly ClusterObject[];
  /** The plan's objects; roles with the rules that they have as well, which what runs still needs. */
  readonly first: readonly AppliedObject[];
  /** The same roles without those rules. */
  readonly narrowed: readonly AppliedObject[];
  /** ConfigMaps and rights that nothing needs afterwards. */
  readonly superseded: readonly ClusterObject[];
  readonly stale: readonly ClusterObject[];
}

/**
 * Puts a set of functions in the place of the one before, under the index's lock: of two at once one alone writes. The
 * index names the new set after all of it has been written, so that a runtime never sees a part. Superseded objects go
 * after that. One that fails before takes back what it made. One that is killed leaves what runs as it is; the next
 * waits until it is sure of that, and cleans up.
 * @throws WatchfireError WF_DEPLOYED_TAKEN and WF_DEPLOYED_REFUSED, before anything is written where the API server can
 * tell; WF_DEPLOYED_CONFLICT
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

/** Whether all is as it should be already: then nothing is written. An index that is still locked is not. */
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

/** Writes what the new set needs beside what is there; where that fails, it is taken back. */
async function bring(writer: ApiObjects, { rights, configMaps }: DeployedState, steps: Steps): Promise<void> {
  const { first, missing, spoilt } = steps;
  const old = new Map([...rights, ...configMaps].map((found) => [nameOf(found), found]));
  const made: ClusterObject[] = [];
  const applied = (found: ClusterObject) => {
    if (!old.has(nameOf(found))) made.push(found);
  };
  try {
    await writer.delete(spoilt);
    // Accounts before roles, roles before bindings; those of one kind at once.
    for (const [, alike] of Map.groupBy(first, ({ kind }) => kind)) await writer.apply(alike, applied);
    await writer.apply(missing, applied);
  } catch (error) {
    const changed = first.flatMap((object) => {
      const rules = old.get(nameOf(object))?.rules;
      return rules === undefined ? [] : [{ ...object, rules }];
    });
    // What cannot be taken back carries our labels, and goes with the next deployment.
    await writer.delete(made.toReversed()).catch(() => undefined);
    await writer.apply(changed).catch(() => undefined);
    throw error;
  }
}

async function cleanUp(writer: ApiObjects, { superseded, stale, narrowed }: Steps, clock: Clock): Promise<void> {
  await writer.delete(superseded);
  if (stale.length + narrowed.length > 0) await pause(clock, handOverMs);
  await writer.apply(narrowed);
  // Bindings before the roles they name, accounts last.
  await writer.delete(stale.toReversed());
}

function notAllGone(error: unknown): never {
  // In a conflict it is another's functions that run, or soon will.
  if (!(error instanceof WatchfireError) || error.code === "WF_DEPLOYED_CONFLICT") throw error;
  const hint = "the new functions run, and what they superseded is not all gone: do as it says and deploy again";
  throw new WatchfireError(error.code, { ...error.detail, hint });
}

/** The texts of the manifests that the index names; without those that are damaged. */
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

/** Whether a ConfigMap holds what the new index says of it. */
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

/** A role with the rules it has in the cluster as well. The object itself where it has no other. */
function widened(object: AppliedObject, existing: readonly ClusterObject[]): AppliedObject {
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
