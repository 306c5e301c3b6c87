import type { GrantedRule, ResourceAccess } from "../kube/access-review.ts";
import type { Permission } from "../manifest/function.ts";

/** RBAC's PolicyRule and one place in which it must hold. */
export interface ScopedRule extends Pick<Permission, "apiGroups" | "resources" | "verbs" | "resourceNames"> {
  /** Absent: everywhere, cluster-scoped objects included. */
  readonly namespace?: string | undefined;
}

/** rbac.authorization.k8s.io/v1 PolicyRule. */
export type PolicyRule = GrantedRule;

/** The smallest unit of a grant: one verb on one resource, for one name or all, in one namespace or all. */
export type Need = ResourceAccess;

/** Splits rules into needs, without duplicates and without needs that a wider one covers; in a stable order. */
export function needsOf(rules: readonly ScopedRule[]): Need[] {
  const needs = new Map<string, Need>();
  for (const { apiGroups, resources, verbs, resourceNames, namespace } of rules) {
    for (const group of apiGroups)
      for (const resource of resources)
        for (const verb of verbs)
          for (const name of resourceNames ?? [undefined]) {
            const need = { group, resource, verb, name, namespace };
            needs.set(keyOf(need), need);
          }
  }
  const covered = ({ name, namespace, ...need }: Need) =>
    (name !== undefined && needs.has(keyOf({ ...need, name: undefined, namespace }))) ||
    (namespace !== undefined && needs.has(keyOf({ ...need, name, namespace: undefined }))) ||
    (name !== undefined &&
      namespace !== undefined &&
      needs.has(keyOf({ ...need, name: undefined, namespace: undefined })));
  return [...needs]
    .filter(([, need]) => !covered(need))
    .sort(([a], [b]) => compare(a, b))
    .map(([, need]) => need);
}

/** Combines needs into the fewest rules, by namespace; "" stands for the whole cluster. In a stable order. */
export function rulesByNamespace(needs: readonly Need[]): Map<string, PolicyRule[]> {
  const places = Map.groupBy(needs, ({ namespace }) => namespace ?? "");
  const sorted = [...places].sort(([a], [b]) => compare(a, b));
  return new Map(sorted.map(([namespace, those]) => [namespace, rulesOf(those)]));
}

function rulesOf(needs: readonly Need[]): PolicyRule[] {
  let rules = needs.map(({ group, resource, verb, name }) => ({
    apiGroups: [group],
    resources: [resource],
    ...(name !== undefined && { resourceNames: [name] }),
    verbs: [verb],
  }));
  // Merges verbs first, as people write rules; then names; then resources with the same verbs and names.
  for (const field of ["verbs", "resourceNames", "resources"] as const) rules = merged(rules, field);
  return rules.sort((a, b) => compare(JSON.stringify(a), JSON.stringify(b)));
}

/** Merges rules that differ only in this field. */
function merged<Rule extends PolicyRule>(
  rules: readonly Rule[],
  field: "verbs" | "resourceNames" | "resources",
): Rule[] {
  const alike = Map.groupBy(rules, (rule) => JSON.stringify([{ ...rule, [field]: rule[field] && "any" }]));
  return [...alike.values()].map((group) => {
    const values = group.flatMap((rule) => rule[field] ?? []);
    return { ...(group[0] as Rule), ...(values.length > 0 && { [field]: [...new Set(values)].sort(compare) }) };
  });
}

const keyOf = ({ namespace, group, resource, name, verb }: Need): string =>
  JSON.stringify([namespace ?? "", group, resource, name ?? "", verb]);

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
