import { boundedName } from "../access/account.ts";

/** Longest value of a label (apimachinery `validation.LabelValueMaxLength`). */
const labelLimit = 63;

/** Longest stem of an object's name, without the hash and its dash. */
const stemLimit = 253 - 17;

/**
 * Label on everything that is created for one runtime, which its account and its namespace identify. An object without either
 * belongs to another.
 */
export const runtimeLabel = "watchfire.dev/runtime";
const namespaceLabel = "watchfire.dev/namespace";
export const functionLabel = "watchfire.dev/function";
/** Label on accounts and rights that `deploy` created. Those printed by `watchfire rbac` lack it, and are left alone. */
export const deployedLabel = "watchfire.dev/deployed";

/** Returns the runtime's account as a label value. */
export const accountLabel = (account: string): string => boundedName(account, labelLimit);

/** Returns the selector of objects deployed for the runtime of an account, within its own namespace. */
export const selectorOf = (account: string): string => `${runtimeLabel}=${accountLabel(account)}`;

/** Returns the labels that identify one runtime's objects in any namespace. */
export const labelsOf = (account: string, namespace: string): Readonly<Record<string, string>> => ({
  [runtimeLabel]: accountLabel(account),
  [namespaceLabel]: namespace,
});

/** Returns the name of the ConfigMap that names the deployed set: `watchfire-functions`. */
export const indexName = (account: string): string => boundedName(`${account}-functions`, stemLimit);

/** Returns the name of a function's ConfigMap, by its content: `watchfire-copy-labels-0f343b0931126a20`. */
export const configMapName = (account: string, functionName: string, sha256: string): string =>
  `${boundedName(`${account}-${functionName}`, stemLimit)}-${sha256.slice(0, 16)}`;
