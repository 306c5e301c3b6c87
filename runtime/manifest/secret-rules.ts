import { requiredName } from "../kube/field-selector.ts";
import { field, items, text } from "./raw-value.ts";
import type { RuleFault } from "./rule-fault.ts";

/**
 * Finds selections, of triggers or reads, that show a handler Secrets which its permissions do not let it list. The runtime's
 * account does the listing, so only this check makes it visible to a reviewer of `permissions`. `object: Metadata` is no
 * exception: the API server asks for `list` there too, and `kubectl apply` keeps a copy of the data in an annotation
 * (`kubectl.kubernetes.io/last-applied-configuration`).
 */
export function* secretFaults(
  selection: unknown,
  permissions: readonly unknown[],
  path: RuleFault["path"],
): Generator<RuleFault> {
  if (field(selection, "apiVersion") !== "v1" || field(selection, "kind") !== "Secret") return;
  const names = field(field(selection, "namespaceSelector"), "matchNames");
  // Labels may select any namespace, so only a rule for all of them grants enough.
  const namespaces = Array.isArray(names) ? [...new Set<unknown>(names)] : [undefined];
  const only = requiredName(text(field(selection, "fieldSelector")) ?? "");
  const missing = namespaces.filter((each) => !permissions.some((rule) => grantsList(rule, each, only)));
  if (missing.length === 0) return;
  const which = only === undefined ? "" : `, resourceNames: [${only}]`;
  const isEverywhere = missing.includes(undefined);
  const where = isEverywhere
    ? "all namespaces"
    : `${missing.length === 1 ? "namespace" : "namespaces"} ${missing.join(", ")}`;
  yield {
    code: "WF_MANIFEST_SECRETS",
    path: [...path, "kind"],
    what: `no rule of \`permissions\` grants list on ${only === undefined ? "secrets" : `secrets/${only}`} in ${where}`,
    hint: `add \`- { apiGroups: [""], resources: [secrets]${which}, verbs: [list]${isEverywhere ? "" : `, namespaces: [${missing.join(", ")}]`} }\``,
  };
}

/** Whether a rule grants listing the Secrets of a namespace (`undefined` for all), or only the one with the selected name. */
function grantsList(rule: unknown, namespace: unknown, only: string | undefined): boolean {
  const has = (name: string, value: string) => items(field(rule, name)).some((each) => each === value || each === "*");
  if (!has("apiGroups", "") || !has("resources", "secrets") || !has("verbs", "list")) return false;
  const named = field(rule, "resourceNames");
  if (named !== undefined && !items(named).some((name) => name === only)) return false;
  const granted = field(rule, "namespaces");
  return granted === undefined || (namespace !== undefined && items(granted).includes(namespace));
}
