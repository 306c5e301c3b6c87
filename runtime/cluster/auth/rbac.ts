import { isFields, type KubeObject } from "../api/object.ts";
import type { Store } from "../storage/store.ts";
import type { User } from "./user.ts";

/** rbac/v1 PolicyRule. */
export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** Attributes of a request: a verb, and either a resource or a path. */
export interface Attributes {
  verb: string;
  /** Set for a resource. */
  resource?: { group: string; plural: string; subresource: string; namespace: string; name: string };
  /** Set for a path that is not a resource. */
  path?: string;
}

const clusterRoles = "clusterroles.rbac.authorization.k8s.io";
const roles = "roles.rbac.authorization.k8s.io";
const clusterRoleBindings = "clusterrolebindings.rbac.authorization.k8s.io";
const roleBindings = "rolebindings.rbac.authorization.k8s.io";

/** Evaluates the stored roles and bindings at each request, so a change takes effect with the next request. */
export class Rbac {
  private readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  allows(user: User, wanted: Attributes): boolean {
    for (const rule of this.rules(user, wanted.resource?.namespace ?? "")) if (covers(rule, wanted)) return true;
    return false;
  }

  /** Yields every rule that holds for a user in a namespace ("" for cluster-wide rules only). */
  *rules(user: User, namespace: string): Generator<PolicyRule> {
    for (const [, { object }] of this.store.collection(clusterRoleBindings).current(""))
      if (binds(object, user, "")) yield* this.rulesOf(object, "");
    if (namespace === "") return;
    for (const [, { object }] of this.store.collection(roleBindings).current(`${namespace}/`))
      if (binds(object, user, namespace)) yield* this.rulesOf(object, namespace);
  }

  /** The rules of the role that a binding refers to. */
  rulesOf(binding: KubeObject, namespace: string): PolicyRule[] {
    const { roleRef } = binding;
    if (!isFields(roleRef)) return [];
    const name = String(roleRef.name);
    const role =
      roleRef.kind === "Role" ? this.store.get(roles, `${namespace}/${name}`) : this.store.get(clusterRoles, name);
    const rules = role?.object.rules;
    return Array.isArray(rules) ? (rules as PolicyRule[]) : [];
  }
}

function binds(binding: KubeObject, user: User, namespace: string): boolean {
  const { subjects } = binding;
  if (!Array.isArray(subjects)) return false;
  return subjects.some((subject) => {
    if (!isFields(subject)) return false;
    if (subject.kind === "User") return subject.name === user.name;
    if (subject.kind === "Group") return user.groups.includes(String(subject.name));
    const own = subject.namespace ?? namespace;
    return subject.kind === "ServiceAccount" && user.name === `system:serviceaccount:${own}:${subject.name}`;
  });
}

const has = (list: readonly string[] | undefined, value: string) =>
  list?.includes("*") || list?.includes(value) || false;

/** True if the rule allows the request. */
export function covers(rule: PolicyRule, { verb, resource, path }: Attributes): boolean {
  if (!has(rule.verbs, verb)) return false;
  if (!resource) return (rule.nonResourceURLs ?? []).some((pattern) => matchesPath(pattern, path ?? ""));
  const full = resource.subresource === "" ? resource.plural : `${resource.plural}/${resource.subresource}`;
  const named =
    has(rule.resources, full) || (resource.subresource !== "" && rule.resources?.includes(`*/${resource.subresource}`));
  if (!named || !has(rule.apiGroups, resource.group)) return false;
  return !rule.resourceNames?.length || rule.resourceNames.includes(resource.name);
}

function matchesPath(pattern: string, path: string): boolean {
  return pattern === "*" || pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1)));
}
