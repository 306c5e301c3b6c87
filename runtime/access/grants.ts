import type { Permission } from "../manifest/function.ts";

/** The verbs that calls need, as RBAC names them. */
export const callVerbs = ["get", "list", "create", "update", "patch", "delete"] as const;

/** The attributes of one call, as the API server's authorizer would see them. */
export interface RequestAttributes {
  /** "" for the core group. */
  readonly group: string;
  /** The plural. */
  readonly resource: string;
  readonly subresource?: string;
  readonly verb: (typeof callVerbs)[number];
  /** Absent for cluster-scoped objects and for all namespaces. */
  readonly namespace?: string;
  /** Absent for a list of any names and for a POST of an object. An apply or a PUT that creates has one. */
  readonly name?: string;
}

/** True if a rule grants the call: RBAC's matching (`pkg/apis/rbac/v1/evaluation_helpers.go`), and the rule's namespaces. */
export function grants(rule: Permission, demand: RequestAttributes): boolean {
  return (
    matches(rule.verbs, demand.verb) &&
    matches(rule.apiGroups, demand.group) &&
    rule.resources.some((pattern) => matchesResource(pattern, demand)) &&
    (!rule.resourceNames || (demand.name !== undefined && rule.resourceNames.includes(demand.name))) &&
    (!rule.namespaces || (demand.namespace !== undefined && rule.namespaces.includes(demand.namespace)))
  );
}

/** True if any rule of the manifest grants the call. */
export const isGranted = (rules: readonly Permission[], demand: RequestAttributes): boolean =>
  rules.some((rule) => grants(rule, demand));

/** True if some rule could grant the verb in the group, whatever the resource, so that discovery is worthwhile. */
export const mayBeGranted = (
  rules: readonly Permission[],
  demand: Pick<RequestAttributes, "group" | "verb">,
): boolean => rules.some((rule) => matches(rule.verbs, demand.verb) && matches(rule.apiGroups, demand.group));

/** Returns the rule to add to `permissions`, as one line of YAML, no wider than the call. */
export function missingRule({ group, resource, subresource, verb, namespace, name }: RequestAttributes): string {
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  const fields = [`apiGroups: [${quoted(group)}]`, `resources: [${quoted(path)}]`, `verbs: [${verb}]`];
  if (name !== undefined) fields.push(`resourceNames: [${quoted(name)}]`);
  if (namespace !== undefined) fields.push(`namespaces: [${quoted(namespace)}]`);
  return `- { ${fields.join(", ")} }`;
}

/** Describes the call for people: `patch deployments.apps/scale "web" in namespace "demo"`. */
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

/** Returns the text, quoted unless YAML reads it as text: not empty, no number, boolean or null. */
const quoted = (text: string): string =>
  /^[a-z][a-z0-9./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/.test(text)
    ? text
    : JSON.stringify(text);
