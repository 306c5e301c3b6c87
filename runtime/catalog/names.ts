import { boundedName } from "../access/account.ts";

/** A label's value may be this long (apimachinery `validation.LabelValueMaxLength`). */
const labelLimit = 63;

/** Of an object's name, less the hash and its dash. */
const stemLimit = 253 - 17;

/** What is on everything that is made for one runtime: its account, and its namespace. What lacks either is another's. */
export const runtimeLabel = "watchfire.dev/runtime";
const namespaceLabel = "watchfire.dev/namespace";
export const functionLabel = "watchfire.dev/function";
/** On accounts and rights: those that `watchfire rbac` prints lack it, and are left alone. */
export const deployedLabel = "watchfire.dev/deployed";

/** The runtime's account as a label's value. */
export const accountLabel = (account: string): string => boundedName(account, labelLimit);

/** Selects what was deployed for the runtime of an account, within its own namespace. */
export const selectorOf = (account: string): string => `${runtimeLabel}=${accountLabel(account)}`;

/** The labels by which anything, wherever it lies, is the one runtime's. */
export const labelsOf = (account: string, namespace: string): Readonly<Record<string, string>> => ({
  [runtimeLabel]: accountLabel(account),
  [namespaceLabel]: namespace,
});

/** The ConfigMap that names the deployed set: `watchfire-functions`. */
export const indexName = (account: string): string => boundedName(`${account}-functions`, stemLimit);

/** A function's ConfigMap, by its content: `watchfire-copy-labels-0f343b0931126a20`. */
export const configMapName = (account: string, functionName: string, sha256: string): string =>
  `${boundedName(`${account}-${functionName}`, stemLimit)}-${sha256.slice(0, 16)}`;
