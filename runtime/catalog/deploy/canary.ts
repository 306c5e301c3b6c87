import { WatchfireError } from "../../base/errors.ts";
import { bundleOf } from "../../bundle/script-bundle.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import { readManifests } from "../../manifest/read.ts";
import { ApiObjects } from "../api-objects.ts";
import { type Canary, readCanary, signedCanary } from "../canary.ts";
import { type ConfigMap, readConfigMap } from "../config-map.ts";
import {
  contentOf,
  type IndexEntry,
  indexConfigMap,
  readIndex,
  type SetIdentity,
  signatureOf,
} from "../deployed-index.ts";
import { audienceOf } from "../index-trust.ts";
import { type PackedFunction, placeOf, repackFunction, unpackFunction } from "../packed-function.ts";
import type { TrustedKeys } from "../signature.ts";
import type { DeployedState } from "./before.ts";

/** Fields of a manifest that a canary may change: only its own isolates use them. */
const free: ReadonlySet<string> = new Set([
  "file",
  "handler",
  "isolation",
  "canary",
  "resources.memoryBytes",
  "resources.cpuPerEventMs",
]);

/** A function's code and manifest. */
interface ComparedCode {
  readonly manifest: FunctionManifest;
  readonly usesOldObject: boolean;
}

/**
 * Returns the entries of the functions that differ from the deployed ones.
 * @param entries those of all functions of the canary, whose ConfigMaps are `functions`
 * @throws WatchfireError WF_DEPLOYED_CANARY with every function and field that a canary may not change
 */
export function canaryEntries(
  before: DeployedState,
  entries: readonly IndexEntry[],
  functions: readonly PackedFunction[],
  set: string,
): readonly IndexEntry[] {
  const old = new Map(before.entries.map((entry) => [entry.name, entry]));
  const names = new Set(entries.map(({ name }) => name));
  const changed = entries.filter(({ name, sha256 }) => old.has(name) && old.get(name)?.sha256 !== sha256);
  const isNew = before.former.taken.length > 0 || old.size === 0;
  const faults = isNew
    ? [`the set ${set} has no deployed code to compare with`]
    : [
        ...entries.flatMap(({ name }) => (old.has(name) ? [] : `the function ${name} is new in the set ${set}`)),
        ...before.entries.flatMap(({ name }) => (names.has(name) ? [] : `it would remove ${name} from the set ${set}`)),
        ...changed.flatMap(({ name }) => {
          const now = functions.find((each) => each.name === name)?.configMap;
          const was = before.configMaps.find(({ metadata }) => metadata.name === old.get(name)?.configMap);
          return faultsOf(name, versionIn(was), versionIn(now));
        }),
      ];
  if (faults.length === 0 && changed.length === 0) faults.push(`no function differs from those of the set ${set}`);
  if (faults.length > 0) throw new WatchfireError("WF_DEPLOYED_CANARY", { what: faults.join("; ") });
  return changed;
}

function faultsOf(name: string, was: ComparedCode | undefined, now: ComparedCode | undefined): string[] {
  if (!was || !now) return [`the deployed code of ${name} is missing or cannot be read`];
  const fields = differences(was, now);
  return [
    ...(fields.length > 0 ? [`${fields.join(", ")} of ${name} differ${fields.length > 1 ? "" : "s"}`] : []),
    ...(now.manifest.delivery.batch ? [`${name} receives batches, and a batch has several keys`] : []),
  ];
}

function versionIn(found: unknown): ComparedCode | undefined {
  const configMap = readConfigMap(found);
  if (!configMap) return undefined;
  try {
    const parts = unpackFunction(configMap);
    const [read] = readManifests(parts.manifest, placeOf(configMap.metadata.name), undefined);
    const { usesOldObject } = bundleOf(parts.script, "");
    return read?.manifest && { manifest: read.manifest, usesOldObject };
  } catch (error) {
    if (error instanceof WatchfireError) return undefined;
    throw error;
  }
}

/** Returns the fields that differ and that a canary may not change, as the manifest names them. */
function differences(one: ComparedCode, other: ComparedCode): string[] {
  const [was, now] = [fieldsOf(one.manifest), fieldsOf(other.manifest)];
  const names = [...new Set([...was.keys(), ...now.keys()])].filter(
    (name) => !free.has(name) && JSON.stringify(was.get(name)) !== JSON.stringify(now.get(name)),
  );
  const oldObject = one.usesOldObject === other.usesOldObject ? [] : ["the use of `oldObject`"];
  return [...names.map((name) => `\`${wordsOf[name] ?? name.replace(/(?:Ms|Bytes)$/, "")}\``), ...oldObject];
}

const wordsOf: Readonly<Record<string, string>> = {
  schedules: "triggers",
  cacheBytes: "resources.cache",
  stateBytes: "resources.state",
};

const fieldsOf = ({ delivery, resources, ...rest }: FunctionManifest): ReadonlyMap<string, unknown> =>
  new Map([
    ...Object.entries(rest),
    ...Object.entries(delivery).map(([name, value]) => [`delivery.${name}`, value] as const),
    ...Object.entries(resources).map(([name, value]) => [`resources.${name}`, value] as const),
  ]);

/** A set while a canary runs. */
export interface CanarySet {
  readonly canary: Canary;
  /** All functions of the set with their current code, and with the canary's. */
  readonly current: readonly PackedFunction[];
  readonly promoted: readonly PackedFunction[];
}

/**
 * Reads a set and its canary.
 * @param keys of which one must have signed both; `undefined`: any are accepted
 * @throws WatchfireError WF_DEPLOYED_NO_CANARY, WF_DEPLOYED_DAMAGED, WF_DEPLOYED_UNTRUSTED
 */
export async function readCanarySet(
  transport: KubeTransport,
  identity: SetIdentity,
  keys: TrustedKeys | undefined,
): Promise<CanarySet> {
  const { namespace, set } = identity;
  const api = new ApiObjects(transport);
  const [index] = (await api.find([indexConfigMap(identity, {})])).map(readConfigMap);
  const canary = index && readCanary(index);
  if (!index || !canary || canary.functions.length === 0) {
    throw new WatchfireError("WF_DEPLOYED_NO_CANARY", { what: `the set ${set} in ${namespace} has no canary` });
  }
  if (keys) assertSigned(index, identity, keys);
  const entries = readIndex(index);
  const wanted = [...entries, ...canary.functions].map(({ configMap: name }) => ({
    kind: "ConfigMap",
    metadata: { name, namespace },
  }));
  const found = (await api.find(wanted)).flatMap((each) => readConfigMap(each) ?? []);
  const packed = (entry: IndexEntry): PackedFunction => {
    const configMap = found.find(({ metadata }) => metadata.name === entry.configMap);
    const repacked = configMap && repackFunction(entry.name, configMap, identity);
    if (repacked?.sha256 === entry.sha256) return repacked;
    const what = `the code of ${entry.name} is missing, or is not what was deployed`;
    throw new WatchfireError("WF_DEPLOYED_DAMAGED", { what, place: { file: placeOf(entry.configMap) } });
  };
  const changed = new Map(canary.functions.map((entry) => [entry.name, entry]));
  return {
    canary,
    current: entries.map(packed),
    promoted: entries.map((entry) => packed(changed.get(entry.name) ?? entry)),
  };
}

/** Signing what the key did not sign would make it trusted. */
function assertSigned(index: ConfigMap, { namespace, account, set }: SetIdentity, keys: TrustedKeys): void {
  const audience = audienceOf(namespace, account, set);
  const { signature, content } = signedCanary(index);
  const found = [
    keys.verify(signatureOf(index), { purpose: "deployed-functions", audience, content: contentOf(index) }),
    keys.verify(signature, { purpose: "deployed-canary", audience, content }),
  ];
  for (const each of found) {
    if (typeof each === "number") continue;
    throw new WatchfireError("WF_DEPLOYED_UNTRUSTED", {
      what: each.why,
      place: { file: placeOf(index.metadata.name) },
    });
  }
}
