import { OwnObjects } from "../access/own-objects.ts";
import type { FunctionManifest, Permission } from "../manifest/function.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import { type Power, powers } from "./powers.ts";
import type { RulesOptions } from "./rules.ts";

/**
 * The runtime in question. `namespace` is `undefined` if unspecified; then only permissions for all namespaces are known to reach
 * it.
 */
export type ReachOptions = Pick<RulesOptions, "account"> & { readonly namespace: string | undefined };

/** Namespace in which Kubernetes and most platforms run their own pods, and keep their data. */
const systemNamespace = "kube-system";

/** Most powers that one warning names; a wildcard has all of them. */
const named = 3;

/** A power that a permission includes. */
interface Reached {
  readonly power: Power;
  /** `create, patch of configmaps reaches the deployed code and its index`. */
  readonly words: string;
}

/**
 * Returns a warning for each permission that reaches further than its text says: to the runtime's own objects, or to the cluster.
 * Calls of handlers for the runtime's objects are refused anyway, but the function's account would still have the right.
 */
export function reachWarnings(
  { permissions }: Pick<FunctionManifest, "permissions">,
  runtime: ReachOptions,
): RuleFault[] {
  return permissions.flatMap((permission, index) => {
    const reached = reachOf(permission, runtime);
    if (reached.length === 0) return [];
    const more = reached.length > named ? `; and ${reached.length - named} more` : "";
    const first = reached.slice(0, named).map(({ words }) => words);
    const isOwn = reached.some(({ power }) => power.where === "Runtime");
    return [
      {
        code: isOwn ? "WF_RBAC_OWN_OBJECTS" : "WF_RBAC_POWERFUL",
        path: ["spec", "permissions", index],
        what: `${first.join("; ")}${more}`,
        hint: hintFor(permission, reached, runtime.namespace),
      },
    ];
  });
}

/** Returns every power that a permission includes, in the order of the table. */
export function reachOf(permission: Permission, runtime: ReachOptions): Reached[] {
  const own = new OwnObjects({ namespace: runtime.namespace ?? "", account: runtime.account });
  return powers.flatMap((power) => {
    const { apiGroups, namespaces } = permission;
    if (!has(apiGroups, power.group) || !isThere(power, namespaces, runtime.namespace)) return [];
    if (!isNamed(power, permission, runtime.namespace, own)) return [];
    const resources = power.resources.filter((resource) => hasResource(permission.resources, resource));
    const verbs = power.verbs.filter((verb) => has(permission.verbs, verb));
    if (verbs.length === 0 || resources.length === 0) return [];
    return [{ power, words: `${verbs.join(", ")} of ${resources.join(", ")} reaches ${power.reached}` }];
  });
}

function isThere({ where }: Power, namespaces: readonly string[] | undefined, home: string | undefined): boolean {
  if (namespaces === undefined || where === "Anywhere") return true;
  // A rule for namespaces grants nothing cluster-scoped.
  if (where === "Cluster") return false;
  return where === "System" ? namespaces.includes(systemNamespace) : home !== undefined && namespaces.includes(home);
}

/** Whether the rule's names leave the power intact. */
function isNamed(
  power: Power,
  { resourceNames, namespaces }: Permission,
  home: string | undefined,
  own: OwnObjects,
): boolean {
  const { names, where, resources } = power;
  if (resourceNames === undefined) return !power.isByName;
  if (where === "Runtime") {
    return resourceNames.some((name) => (resources.includes("namespaces") ? name === home : own.isOwnName(name)));
  }
  if (names === "any" || (names && resourceNames.some((name) => names.test(name)))) return true;
  return where === "System" && namespaces !== undefined;
}

const has = (values: readonly string[], value: string): boolean => values.includes("*") || values.includes(value);

const hasResource = (patterns: readonly string[], resource: string): boolean =>
  has(patterns, resource) || (resource.includes("/") && patterns.includes(resource.replace(/^[^/]+/, "*")));

function hintFor(
  { namespaces, resourceNames }: Permission,
  reached: readonly Reached[],
  home = "the runtime's",
): string {
  const places = new Set(reached.map(({ power }) => power.where));
  // Restricting these by namespace or name does not weaken them.
  if (!places.has("Runtime") && !places.has("System")) {
    return "leave out what the handler does without, and have the rest reviewed as rights over the cluster";
  }
  const reserved = [
    ...new Set([...(places.has("Runtime") ? [home] : []), ...(places.has("System") ? [systemNamespace] : [])]),
  ];
  if (namespaces === undefined)
    return `give it \`namespaces\` other than ${reserved.join(" and ")}, or \`resourceNames\``;
  const out = reserved.filter((name) => namespaces.includes(name));
  const take = resourceNames ? "take those out of its `resourceNames`" : "give it `resourceNames`";
  const isOnly = namespaces.every((name) => out.includes(name));
  if (!isOnly) return `take ${out.join(" and ")} out of its \`namespaces\`, or ${take}`;
  return places.has("System") ? "leave out what the handler does without, and have the rest reviewed" : take;
}
