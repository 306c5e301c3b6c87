import { boundedName } from "../access/account.ts";
import { dnsLabel } from "../kube/names.ts";

/** Longest value of a label (apimachinery `validation.LabelValueMaxLength`). */
const labelLimit = 63;

/** Longest stem of an object's name, without the hash and its dash. */
const stemLimit = 253 - 17;

/** Longest stem of a set's index, without the dot and the set's name. */
const indexStemLimit = 253 - 1 - labelLimit;

/** Longest number of a revision in a name, with its dot. */
const revisionDigits = 11;

/**
 * Label on everything that is created for one runtime, which its account and its namespace identify. An object without either
 * belongs to another.
 */
export const runtimeLabel = "watchfire.dev/runtime";
const namespaceLabel = "watchfire.dev/namespace";
export const functionLabel = "watchfire.dev/function";
/** Label on accounts and rights that `deploy` created. Those printed by `watchfire rbac` lack it, and are left alone. */
export const deployedLabel = "watchfire.dev/deployed";
/** Label on everything that `deploy` wrote: the set that it belongs to. Absent from what versions without sets wrote. */
export const setLabel = "watchfire.dev/set";

/** Label on what is kept of earlier revisions: the runtime's account. The runtime neither watches nor runs objects with it. */
const keptLabel = "watchfire.dev/kept";

/** The set of whatever was deployed without the name of a set. */
export const defaultSet = "default";

/** Returns the runtime's account as a label value. */
export const accountLabel = (account: string): string => boundedName(account, labelLimit);

/** Returns the selector of objects deployed for the runtime of an account, within its own namespace. */
export const selectorOf = (account: string): string => `${runtimeLabel}=${accountLabel(account)}`;

/** Returns the labels that identify one runtime's objects in any namespace. */
export const labelsOf = (account: string, namespace: string): Readonly<Record<string, string>> => ({
  [runtimeLabel]: accountLabel(account),
  [namespaceLabel]: namespace,
});

/**
 * Returns the name of the ConfigMap that names the functions of a set: `watchfire-functions`, or `watchfire-functions.team-a`.
 * A function's name contains no dot, so that its ConfigMap is never taken for an index.
 */
export const indexName = (account: string, set: string): string =>
  set === defaultSet ? boundedName(`${account}-functions`, stemLimit) : `${indexPrefix(account)}${set}`;

const indexPrefix = (account: string): string => `${boundedName(`${account}-functions`, indexStemLimit)}.`;

/** Returns the set whose index has this name. `undefined` if it is no index. */
export function setOfIndex(account: string, name: string): string | undefined {
  if (name === indexName(account, defaultSet)) return defaultSet;
  const prefix = indexPrefix(account);
  const set = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return set !== defaultSet && dnsLabel.test(set) ? set : undefined;
}

/** Returns the name of the ConfigMap by which the chart names its runtime in a namespace that shares it. */
export const sharedRuntimeName = (account: string): string => boundedName(`${account}-runtime`, stemLimit);

/** Returns the labels of what is kept of a set's earlier revisions. */
export const keptLabelsOf = (account: string, namespace: string, set: string): Readonly<Record<string, string>> => ({
  [keptLabel]: accountLabel(account),
  [namespaceLabel]: namespace,
  [setLabel]: set,
});

/** Returns the name of the ConfigMap that records a revision of a set: `watchfire-revision.team-a.12`. */
export const revisionName = (account: string, set: string, number: number): string =>
  `${boundedName(`${account}-revision`, indexStemLimit - revisionDigits)}.${set}.${number}`;

/** Returns the name of the copy of a function's code that is kept for a set's earlier revisions. */
export const keptName = (account: string, set: string, functionName: string, sha256: string): string =>
  `${boundedName(`${account}-kept.${set}.${functionName}`, stemLimit)}-${sha256.slice(0, 16)}`;

/** Returns the name of a function's ConfigMap, by its content: `watchfire-copy-labels-0f343b0931126a20`. */
export const configMapName = (account: string, functionName: string, sha256: string): string =>
  `${boundedName(`${account}-${functionName}`, stemLimit)}-${sha256.slice(0, 16)}`;
