import { OwnObjects } from "../access/own-objects.ts";
import type { FunctionManifest, Permission } from "../manifest/function.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import type { RulesOptions } from "./rules.ts";

/** For which runtime: `namespace` is undefined where nobody said; only permissions for all namespaces are then known to reach it. */
export type ReachOptions = Pick<RulesOptions, "account"> & { readonly namespace: string | undefined };

/** Rights by which an account can change the runtime, or become it. */
interface Power {
  readonly group: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** What it reaches. */
  readonly reached: string;
  /** Its objects lie in no namespace. */
  readonly isClusterScoped?: true;
}

const writes = ["create", "update", "patch", "delete"];
const makes = ["create", "update", "patch"];

const powers: readonly Power[] = [
  { group: "", resources: ["configmaps"], verbs: writes, reached: "the deployed code and its index" },
  {
    group: "",
    resources: ["secrets"],
    verbs: ["get", "list"],
    reached: "the runtime's positions, and other functions' env",
  },
  {
    group: "",
    resources: ["secrets"],
    verbs: writes,
    reached: "the runtime's positions, and the token of any account",
  },
  { group: "", resources: ["serviceaccounts"], verbs: writes, reached: "the functions' accounts" },
  { group: "", resources: ["serviceaccounts/token"], verbs: ["create"], reached: "the token of any account" },
  { group: "", resources: ["pods"], verbs: writes, reached: "the runtime's pod, and a pod under any account" },
  {
    group: "",
    resources: ["pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"],
    verbs: makes,
    reached: "the inside of the runtime's pod",
  },
  { group: "", resources: ["pods/eviction"], verbs: ["create"], reached: "the runtime's pod" },
  { group: "", resources: ["replicationcontrollers"], verbs: makes, reached: "a pod under any account" },
  { group: "", resources: ["persistentvolumeclaims"], verbs: ["delete"], reached: "the runtime's volume" },
  {
    group: "apps",
    resources: ["deployments", "statefulsets", "daemonsets", "replicasets"],
    verbs: writes,
    reached: "the runtime's workload, and a pod under any account",
  },
  { group: "apps", resources: ["statefulsets/scale"], verbs: ["update", "patch"], reached: "the runtime's replicas" },
  { group: "batch", resources: ["jobs", "cronjobs"], verbs: makes, reached: "a pod under any account" },
  { group: "coordination.k8s.io", resources: ["leases"], verbs: writes, reached: "the runtime's Lease" },
  {
    group: "rbac.authorization.k8s.io",
    resources: ["roles", "rolebindings"],
    verbs: writes,
    reached: "the rights of the functions' accounts",
  },
  {
    group: "rbac.authorization.k8s.io",
    resources: ["clusterroles", "clusterrolebindings"],
    verbs: writes,
    reached: "the rights of every account",
    isClusterScoped: true,
  },
  {
    group: "watchfire.dev",
    resources: ["functions", "functions/status"],
    verbs: writes,
    reached: "the functions' objects",
  },
  { group: "", resources: ["namespaces"], verbs: ["delete"], reached: "the runtime's namespace" },
  {
    group: "apiextensions.k8s.io",
    resources: ["customresourcedefinitions"],
    verbs: writes,
    reached: "the definition of Function",
    isClusterScoped: true,
  },
  {
    group: "admissionregistration.k8s.io",
    resources: ["mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
    verbs: makes,
    reached: "all that anybody writes",
    isClusterScoped: true,
  },
];

/** Powers that one warning names; a wildcard has them all. */
const named = 3;

/**
 * A warning for each permission that reaches what is the runtime's own. A handler's calls are refused all the same; the
 * function's account would still have the right.
 */
export function reachWarnings(
  { permissions }: Pick<FunctionManifest, "permissions">,
  runtime: ReachOptions,
): RuleFault[] {
  const own = new OwnObjects({ namespace: runtime.namespace ?? "", account: runtime.account });
  return permissions.flatMap((permission, index) => {
    const reached = powers.flatMap((power) => said(permission, power, runtime.namespace, own));
    if (reached.length === 0) return [];
    const [first, ...others] = reached.slice(0, named);
    const more = reached.length > named ? `; and ${reached.length - named} more` : "";
    return [
      {
        code: "WF_RBAC_OWN_OBJECTS",
        path: ["spec", "permissions", index],
        what: `${[first, ...others].join("; ")}${more}`,
        hint: hintFor(permission, runtime.namespace),
      },
    ];
  });
}

/** `create, patch of configmaps reaches the deployed code`; nothing where the permission has none of it. */
function said(permission: Permission, power: Power, home: string | undefined, own: OwnObjects): string[] {
  const { apiGroups, resourceNames, namespaces } = permission;
  if (!has(apiGroups, power.group) || !isThere(power, namespaces, home)) return [];
  const verbs = power.verbs.filter((verb) => has(permission.verbs, verb) && !(resourceNames && verb === "create"));
  const resources = power.resources.filter((resource) => hasResource(permission.resources, resource));
  const names = resourceNames?.filter((name) => isOwn(name, power, home, own));
  if (verbs.length === 0 || resources.length === 0 || names?.length === 0) return [];
  return [`${verbs.join(", ")} of ${resources.join(", ")} reaches ${power.reached}`];
}

function isThere(
  { isClusterScoped }: Power,
  namespaces: readonly string[] | undefined,
  home: string | undefined,
): boolean {
  if (namespaces === undefined) return true;
  // A rule for namespaces grants nothing beyond them.
  if (isClusterScoped) return false;
  return home !== undefined && namespaces.includes(home);
}

const isOwn = (name: string, { group, resources }: Power, home: string | undefined, own: OwnObjects): boolean => {
  if (resources.includes("namespaces")) return name === home;
  return group === "apiextensions.k8s.io" ? name.endsWith(".watchfire.dev") : own.isOwnName(name);
};

const has = (values: readonly string[], value: string): boolean => values.includes("*") || values.includes(value);

const hasResource = (patterns: readonly string[], resource: string): boolean =>
  has(patterns, resource) || (resource.includes("/") && patterns.includes(resource.replace(/^[^/]+/, "*")));

function hintFor({ namespaces, resourceNames }: Permission, home: string | undefined): string {
  if (namespaces === undefined)
    return `give it \`namespaces\` other than ${home ?? "the runtime's"}, or \`resourceNames\``;
  const others = namespaces.filter((name) => name !== home);
  const take = resourceNames ? "take the runtime's out of its `resourceNames`" : "give it `resourceNames`";
  return others.length === 0 ? take : `take ${home} out of its \`namespaces\`, or ${take}`;
}
