import { z } from "zod";
import type { KubeTransport } from "../kube/transport.ts";
import type { Need, PolicyRule } from "./scoped-rule.ts";

/**
 * No namespace can have this name, so that no Role can lie in it: what an account may do there, it may do everywhere.
 */
export const nowhere = "-";

const rulesSchema = z.looseObject({
  status: z.looseObject({
    resourceRules: z.array(
      z.looseObject({
        apiGroups: z.array(z.string()).nullish(),
        resources: z.array(z.string()).nullish(),
        resourceNames: z.array(z.string()).nullish(),
        verbs: z.array(z.string()),
      }),
    ),
    incomplete: z.boolean().default(false),
  }),
});

const answerSchema = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/** Whose rights are asked for: the connection's own, or another's, which needs the right to ask that. */
export type Asked = "self" | { readonly user: string; readonly groups: readonly string[] };

/** The rules that hold for the connection's own account in a namespace. `incomplete`: there may be more. */
export async function ownRules(
  transport: KubeTransport,
  namespace: string,
  signal?: AbortSignal,
): Promise<{ readonly rules: readonly PolicyRule[]; readonly incomplete: boolean }> {
  const { resourceRules, incomplete } = rulesSchema.parse(
    await review(transport, "SelfSubjectRulesReview", { namespace }, signal),
  ).status;
  const rules = resourceRules.map(({ apiGroups, resources, resourceNames, verbs }) => ({
    apiGroups: apiGroups ?? [],
    resources: resources ?? [],
    verbs,
    ...(resourceNames && resourceNames.length > 0 && { resourceNames }),
  }));
  return { rules, incomplete };
}

/** Whether the API server would allow it. */
export async function isAllowed(
  transport: KubeTransport,
  { group, resource, verb, name, namespace }: Need,
  asked: Asked,
  signal?: AbortSignal,
): Promise<boolean> {
  const [plural = "", subresource] = resource.split("/");
  const attributes = { group, resource: plural, subresource, verb, name, namespace };
  const kind = asked === "self" ? "SelfSubjectAccessReview" : "SubjectAccessReview";
  const spec = { resourceAttributes: attributes, ...(asked !== "self" && asked) };
  return answerSchema.parse(await review(transport, kind, spec, signal)).status.allowed;
}

/**
 * Which of the needs the connection's account lacks. One request a namespace; where the server cannot tell all rules
 * (authorizers other than RBAC have a say), one more for each need that they do not cover.
 */
export async function missingNeeds(
  transport: KubeTransport,
  needs: readonly Need[],
  signal?: AbortSignal,
): Promise<Need[]> {
  const missing: Need[] = [];
  for (const [namespace, those] of Map.groupBy(needs, (need) => need.namespace ?? nowhere)) {
    const { rules, incomplete } = await ownRules(transport, namespace, signal);
    for (const need of those) {
      if (rules.some((rule) => covers(rule, need))) continue;
      if (!incomplete || !(await isAllowed(transport, need, "self", signal))) missing.push(need);
    }
  }
  return missing;
}

/** Whether a rule grants a need: RBAC's own matching (`pkg/apis/rbac/v1/evaluation_helpers.go`). */
export function covers({ apiGroups, resources, resourceNames, verbs }: PolicyRule, need: Need): boolean {
  const subresource = need.resource.split("/")[1];
  return (
    (verbs.includes("*") || verbs.includes(need.verb)) &&
    (apiGroups.includes("*") || apiGroups.includes(need.group)) &&
    resources.some((each) => each === "*" || each === need.resource || (subresource && each === `*/${subresource}`)) &&
    (!resourceNames || (need.name !== undefined && resourceNames.includes(need.name)))
  );
}

/** For people, as `kubectl auth can-i` has it: `patch deployments.apps/scale "web" in namespace "demo"`. */
export function describeNeed({ group, resource, verb, name, namespace }: Need): string {
  const [plural, subresource] = resource.split("/");
  const type = `${plural}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
  const which = name === undefined ? "" : ` ${JSON.stringify(name)}`;
  return `${verb} ${type}${which} ${namespace === undefined ? "in all namespaces" : `in namespace ${JSON.stringify(namespace)}`}`;
}

function review(transport: KubeTransport, kind: string, spec: object, signal?: AbortSignal): Promise<unknown> {
  const path = `/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`;
  const body = JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind, spec });
  return transport.json<unknown>({ method: "POST", path, body, ...(signal && { signal }) }, 4 * 1024 * 1024);
}
