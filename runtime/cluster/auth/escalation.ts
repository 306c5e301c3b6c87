import { isFields, type KubeObject } from "../api/object.ts";
import { forbidden } from "../api/status.ts";
import type { ResourceType } from "../kinds/resource-type.ts";
import type { Authorizer } from "./authorizer.ts";
import { covers, type PolicyRule, type Rbac } from "./rbac.ts";
import { mastersGroup, type User } from "./user.ts";

const group = "rbac.authorization.k8s.io";
const roleKinds = new Set(["Role", "ClusterRole"]);
const bindingKinds = new Set(["RoleBinding", "ClusterRoleBinding"]);

/** The user of a write, with its resource and its namespace. */
interface Write {
  readonly type: ResourceType;
  readonly user: User;
  readonly namespace: string;
}

/** Throws a 403 if a role or binding grants what its writer may not do, unless the writer may `escalate` or `bind`. */
export function refuseEscalation(authorizer: Authorizer, write: Write, object: KubeObject): void {
  const { type, user, namespace } = write;
  if (type.group !== group || user.groups.includes(mastersGroup)) return;
  const name = object.metadata.name ?? "";
  const grants = (rules: PolicyRule[]) => {
    const missing = rules.flatMap(atoms).filter((atom) => !holds(authorizer.rbac, user, namespace, atom));
    if (missing.length === 0) return;
    const groups = user.groups.map((one) => JSON.stringify(one)).join(" ");
    const lacking = missing.map(ruleText).join("\n");
    const why = `user ${JSON.stringify(user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${lacking}`;
    throw forbidden(type, name, why);
  };
  const may = (verb: string, plural: string, target: string) =>
    authorizer.allows(user, { verb, resource: { group, plural, subresource: "", namespace, name: target } });
  if (roleKinds.has(type.kind)) {
    if (!may("escalate", type.plural, name)) grants(Array.isArray(object.rules) ? (object.rules as PolicyRule[]) : []);
  } else if (bindingKinds.has(type.kind) && isFields(object.roleRef)) {
    const plural = object.roleRef.kind === "Role" ? "roles" : "clusterroles";
    if (!may("bind", plural, String(object.roleRef.name))) grants(authorizer.rbac.rulesOf(object, namespace));
  }
}

/** Splits a rule into rules of one verb on one resource or path, because rules are compared piece by piece. */
function atoms(rule: PolicyRule): PolicyRule[] {
  const names = rule.resourceNames?.length ? rule.resourceNames.map((one) => [one]) : [[]];
  return rule.verbs.flatMap((verb) => [
    ...(rule.apiGroups ?? []).flatMap((apiGroup) =>
      (rule.resources ?? []).flatMap((resource) =>
        names.map((resourceNames) => ({
          verbs: [verb],
          apiGroups: [apiGroup],
          resources: [resource],
          ...(resourceNames.length > 0 ? { resourceNames } : {}),
        })),
      ),
    ),
    ...(rule.nonResourceURLs ?? []).map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
  ]);
}

function holds(rbac: Rbac, user: User, namespace: string, atom: PolicyRule): boolean {
  const [verb = ""] = atom.verbs;
  const [plural = "", subresource = ""] = (atom.resources?.[0] ?? "").split("/");
  const wanted = atom.nonResourceURLs
    ? { verb, path: atom.nonResourceURLs[0] ?? "" }
    : {
        verb,
        resource: {
          group: atom.apiGroups?.[0] ?? "",
          plural,
          subresource,
          namespace,
          name: atom.resourceNames?.[0] ?? "",
        },
      };
  for (const rule of rbac.rules(user, namespace)) if (covers(rule, wanted)) return true;
  return false;
}

function ruleText({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }: PolicyRule): string {
  const part = (name: string, list: string[] | undefined) =>
    list?.length ? [`${name}:[${list.map((one) => JSON.stringify(one)).join(" ")}]`] : [];
  const parts = [
    ...part("APIGroups", apiGroups),
    ...part("Resources", resources),
    ...part("ResourceNames", resourceNames),
    ...part("NonResourceURLs", nonResourceURLs),
    ...part("Verbs", verbs),
  ];
  return `{${parts.join(", ")}}`;
}
