import { isDeepStrictEqual } from "node:util";
import { type AppliedObject, type ClusterObject, nameOf } from "../api-objects.ts";

type WithRules = Readonly<Record<string, unknown>>;

/** Returns the rules of a role, unread. */
export const rulesOf = (object: WithRules | undefined): readonly unknown[] =>
  Array.isArray(object?.rules) ? object.rules : [];

/** Returns the rules of one role that another does not have. */
export function rulesBeyond(of: WithRules | undefined, other: WithRules | undefined): readonly unknown[] {
  const said = new Set(rulesOf(other).map(canonical));
  return rulesOf(of).filter((rule) => !said.has(canonical(rule)));
}

/** Whether an object has the wanted fields, apart from its metadata. */
export function hasContent({ metadata: _, kind: __, apiVersion: ___, ...fields }: AppliedObject, found: ClusterObject) {
  return Object.entries(fields).every(([field, value]) => isDeepStrictEqual(found[field], value));
}

/**
 * Describes what a deployment changes in accounts and rights: a line for each created or changed object, and below a role a line
 * for each rule that it gains or loses.
 */
export function rightsChanges(objects: readonly AppliedObject[], existing: readonly ClusterObject[]): string[] {
  const before = new Map(existing.map((found) => [nameOf(found), found]));
  return objects.flatMap((object) => {
    const found = before.get(nameOf(object));
    if (found && hasContent(object, found)) return [];
    return [
      `${found ? "changed" : "created"} ${nameOf(object)}`,
      ...rulesBeyond(object, found).map((rule) => `  + ${describeRule(rule)}`),
      ...rulesBeyond(found, object).map((rule) => `  - ${describeRule(rule)}`),
    ];
  });
}

/** Returns `get, patch configmaps`, with the API group and the objects' names if the rule has any. */
function describeRule(rule: unknown): string {
  const { verbs, resources, apiGroups, resourceNames, nonResourceURLs } = (rule ?? {}) as WithRules;
  const listed = (value: unknown) => (Array.isArray(value) ? value.filter((each) => each !== "").join(", ") : "");
  const group = listed(apiGroups);
  const names = listed(resourceNames);
  const what = `${listed(verbs)} ${listed(resources) || listed(nonResourceURLs)}`;
  return `${what}${group && ` of ${group}`}${names && ` named ${names}`}`;
}

/** Returns the same text for equal rules, whatever the order of their fields. */
const canonical = (rule: unknown): string =>
  JSON.stringify(Object.entries(rule ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
