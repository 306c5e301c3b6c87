import type { Permission } from "../manifest/function.ts";

/** What one call asks for, as the API server's authorizer would see it. */
export interface RequestAttributes {
  /** "" for the core group. */
  readonly group: string;
  /** The plural. */
  readonly resource: string;
  readonly subresource?: string;
  readonly verb: "get" | "list" | "create" | "update" | "patch" | "delete";
  /** Absent: cluster-scoped, or all namespaces. */
  readonly namespace?: string;
  /** Absent: a list of objects of any name, or a create. */
  readonly name?: string;
}

/** Whether a rule grants it: RBAC's own matching (`pkg/apis/rbac/v1/evaluation_helpers.go`), and the rule's namespaces. */
export function grants(rule: Permission, demand: RequestAttributes): boolean {
  return (
    matches(rule.verbs, demand.verb) &&
    matches(rule.apiGroups, demand.group) &&
    rule.resources.some((pattern) => matchesResource(pattern, demand)) &&
    (!rule.resourceNames || (demand.name !== undefined && rule.resourceNames.includes(demand.name))) &&
    (!rule.namespaces || (demand.namespace !== undefined && rule.namespaces.includes(demand.namespace)))
  );
}

/**
 * Those of the verbs that a rule can grant. A rule with names grants no create, whose request has no name, but it grants one of a
 * subresource.
 */
export const grantableVerbs = <Verb extends string>(
  { resources, resourceNames }: Pick<Permission, "resources" | "resourceNames">,
  verbs: readonly Verb[],
): Verb[] =>
  verbs.filter((verb) => verb !== "create" || !resourceNames || resources.some((each) => /^\*$|\//.test(each)));

/** Whether any rule of the manifest grants it. */
export const isGranted = (rules: readonly Permission[], demand: RequestAttributes): boolean =>
  rules.some((rule) => grants(rule, demand));

/** Whether some rule could grant the verb in the group, whatever the resource: enough to look further. */
export const mayBeGranted = (
  rules: readonly Permission[],
  demand: Pick<RequestAttributes, "group" | "verb">,
): boolean => rules.some((rule) => matches(rule.verbs, demand.verb) && matches(rule.apiGroups, demand.group));

/** The rule to add to `permissions`, as one YAML line, no wider than the call. */
export function missingRule({ group, resource, subresource, verb, namespace, name }: RequestAttributes): string {
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  const fields = [`apiGroups: [${quoted(group)}]`, `resources: [${quoted(path)}]`, `verbs: [${verb}]`];
  if (name !== undefined && (verb !== "create" || subresource !== undefined))
    fields.push(`resourceNames: [${quoted(name)}]`);
  if (namespace !== undefined) fields.push(`namespaces: [${quoted(namespace)}]`);
  return `- { ${fields.join(", ")} }`;
}

/** What was asked for, for people: `patch deployments.apps/scale "web" in namespace "demo"`. */
export function describeDemand({ group, resource, subresource, verb, namespace, name }: RequestAttributes): string {
  const type = `${resource}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
  const which = name === undefined ? "" : ` ${JSON.stringify(name)}`;
  return `${verb} ${type}${which}${namespace === undefined ? "" : ` in namespace ${JSON.stringify(namespace)}`}`;
}

const matches = (patterns: readonly string[], value: string): boolean =>
  patterns.includes("*") || patterns.includes(value);

function matchesResource(pattern: string, { resource, subresource }: RequestAttributes): boolean {
  if (pattern === "*") return true;
  const asked = subresource === undefined ? resource : `${resource}/${subresource}`;
  return pattern === asked || (subresource !== undefined && pattern === `*/${subresource}`);
}

/** Plain where YAML reads it as text: neither empty, nor a number, a boolean or null in its notation. */
const quoted = (text: string): string =>
  /^[a-z][a-z0-9./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/.test(text)
    ? text
    : JSON.stringify(text);
