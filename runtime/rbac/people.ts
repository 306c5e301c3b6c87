import { boundedName } from "../access/account.ts";
import type { RbacObject } from "./objects.ts";
import { needsOf, rulesByNamespace, type ScopedRule } from "./scoped-rule.ts";

/** The roles of people and pipelines: who deploys, who operates what runs, who looks. */
export const personRoles = ["deployer", "operator", "reader"] as const;
export type PersonRole = (typeof personRoles)[number];

export interface PersonRoleOptions {
  readonly role: PersonRole;
  /** The runtime's namespace and the name of its account. */
  readonly namespace: string;
  readonly account: string;
  /** The set of `functions`; `undefined`: all functions of the runtime. */
  readonly set?: string | undefined;
  /** Names of the set's functions. Not used without a set. */
  readonly functions: readonly string[];
  /** For a deployer: the objects that a deployment of the functions writes. */
  readonly deployed: readonly RbacObject[];
}

const rbacGroup = "rbac.authorization.k8s.io";

/** Returns the rights of a role: the fewest with which its commands work. */
export function personRules(options: PersonRoleOptions): ScopedRule[] {
  const { role, namespace, set, functions, deployed } = options;
  const rule = (apiGroups: string, resources: readonly string[], verbs: readonly string[]): ScopedRule => {
    return { apiGroups: [apiGroups], resources, verbs, namespace };
  };
  // The commands find the runtime's pod, and forward its port.
  const reach = [rule("", ["pods"], ["get", "list"]), rule("", ["pods/portforward"], ["create"])];
  if (role === "deployer") return deployerRules(namespace, deployed);
  const writes = role === "operator" ? ["update"] : [];
  // No list is limited to names, so a role for one set has no right on all functions.
  const own: ScopedRule =
    set === undefined
      ? rule("watchfire.dev", ["functions"], ["get", "list", ...writes])
      : { ...rule("watchfire.dev", ["functions"], ["get", ...writes]), resourceNames: functions };
  return [own, ...reach];
}

/** The rights of `watchfire deploy`, `promote`, `abort`, `rollback` and `undeploy`, in the namespaces that the functions name. */
function deployerRules(home: string, deployed: readonly RbacObject[]): ScopedRule[] {
  const all = ["get", "list", "create", "patch", "delete"];
  const kinds = deployed.filter(({ kind }) => kind === "Role" || kind === "ClusterRole");
  const namespaces = new Set([home, ...kinds.flatMap(({ metadata: { namespace } }) => namespace ?? [])]);
  const grants = (scope: "" | "cluster", namespace: string | undefined): ScopedRule[] => [
    { apiGroups: [rbacGroup], resources: [`${scope}roles`, `${scope}rolebindings`], verbs: all, namespace },
    { apiGroups: [rbacGroup], resources: [`${scope}roles`], verbs: ["escalate", "bind"], namespace },
  ];
  return [
    { apiGroups: [""], resources: ["configmaps"], verbs: [...all, "update"], namespace: home },
    { apiGroups: [""], resources: ["serviceaccounts"], verbs: all, namespace: home },
    { apiGroups: ["apps"], resources: ["statefulsets", "deployments"], verbs: ["list"], namespace: home },
    // `watchfire promote` asks for what the runtime says of the canary.
    { apiGroups: ["watchfire.dev"], resources: ["functions"], verbs: ["get"], namespace: home },
    ...[...namespaces].flatMap((namespace) => grants("", namespace)),
    ...(kinds.some(({ kind }) => kind === "ClusterRole") ? grants("cluster", undefined) : []),
  ];
}

/** Returns the Role of each namespace, and the ClusterRole if one is needed. None is bound to anybody. */
export function personObjects(options: PersonRoleOptions): RbacObject[] {
  const name = personRoleName(options);
  const description = personWords(options).join(" ");
  return [...rulesByNamespace(needsOf(personRules(options)))].map(([namespace, rules]) => ({
    apiVersion: `${rbacGroup}/v1`,
    kind: namespace === "" ? "ClusterRole" : "Role",
    metadata: {
      name: namespace === options.namespace ? name : boundedName(`${name}.${options.namespace}`, 253),
      ...(namespace !== "" && { namespace }),
      annotations: { "kubernetes.io/description": description },
    },
    rules,
  }));
}

/** Name of the Role in the runtime's namespace. In others, and as a ClusterRole, it ends in that namespace's name. */
const personRoleName = ({ role, account, set }: PersonRoleOptions): string =>
  boundedName([account, role, ...(set === undefined ? [] : [set])].join("-"), 253);

/** Says in sentences what a role may do, and what it may not. */
export function personWords({ role, namespace, set, functions }: PersonRoleOptions): string[] {
  const which =
    set === undefined ? `all functions of the runtime in ${namespace}` : `the set ${set} (${functions.join(", ")})`;
  const reach = `It may forward a port of every pod in ${namespace}.`;
  const sees = `It may see the state, runs, logs, errors and dead letters of ${which}, without the values of Secrets.`;
  switch (role) {
    case "reader":
      return [sees, reach, "It may change nothing, and read neither Secrets nor ConfigMaps."];
    case "operator":
      return [
        sees,
        `It may pause, resume, run, redeliver and record them, and replay and drop their dead letters.`,
        reach,
        "It may not deploy, and neither read Secrets nor create tokens.",
      ];
    case "deployer":
      return [
        `It may deploy, roll back and undeploy functions of the runtime in ${namespace}, and grant them what their manifests ask for.`,
        "It may write all ConfigMaps, accounts and roles of these namespaces, and with `escalate` and `bind` grant every right in them: its holder decides what runs there, in every set.",
        "It sees no runs and no dead letters: bind the role of an operator or reader as well.",
      ];
  }
}
