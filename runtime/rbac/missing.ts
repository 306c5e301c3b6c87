import { type GrantedRule, isAllowed, ownRules } from "../kube/access-review.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Need } from "./scoped-rule.ts";

/** A name that no namespace can have, so no Role can exist there: what an account may do in it, it may do everywhere. */
export const impossibleNamespace = "-";

/** Limits of one check. */
interface CheckLimits {
  /** Most missing needs that are looked for. */
  readonly missing: number;
  /** Called before each request. It throws to end the check. */
  readonly before: () => void;
}

/**
 * Returns the needs that the connection's account lacks. Makes one request per namespace, plus one for each need that the
 * reported rules do not cover, because authorizers other than RBAC may still allow it.
 * @param limits default: there are no limits
 */
export async function missingNeeds(
  transport: KubeTransport,
  needs: readonly Need[],
  signal?: AbortSignal,
  limits?: CheckLimits,
): Promise<Need[]> {
  const missing: Need[] = [];
  for (const [namespace, those] of Map.groupBy(needs, (need) => need.namespace ?? impossibleNamespace)) {
    limits?.before();
    const rules = await ownRules(transport, namespace, signal);
    for (const need of those) {
      if (rules.some((rule) => covers(rule, need))) continue;
      limits?.before();
      if (!(await isAllowed(transport, need, "self", signal))) missing.push(need);
      if (missing.length === limits?.missing) return missing;
    }
  }
  return missing;
}

/** Whether a rule grants a need, by RBAC's own matching (`pkg/apis/rbac/v1/evaluation_helpers.go`). */
export function covers({ apiGroups, resources, resourceNames, verbs }: GrantedRule, need: Need): boolean {
  const subresource = need.resource.split("/")[1];
  return (
    (verbs.includes("*") || verbs.includes(need.verb)) &&
    (apiGroups.includes("*") || apiGroups.includes(need.group)) &&
    resources.some((each) => each === "*" || each === need.resource || (subresource && each === `*/${subresource}`)) &&
    (!resourceNames || (need.name !== undefined && resourceNames.includes(need.name)))
  );
}

/** Describes a need like `kubectl auth can-i`: `patch deployments.apps/scale "web" in namespace "demo"`. */
export function describeNeed({ group, resource, verb, name, namespace }: Need): string {
  const [plural, subresource] = resource.split("/");
  const type = `${plural}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
  const which = name === undefined ? "" : ` ${JSON.stringify(name)}`;
  const where = namespace === undefined ? "in all namespaces" : `in namespace ${JSON.stringify(namespace)}`;
  return `${verb} ${type}${which} ${where}`;
}
