import { suggest } from "../base/suggest.ts";
import { apiVersionOf, type Discovery } from "../kube/discovery.ts";
import type { GroupVersion } from "../kube/discovery-document.ts";
import type { FunctionManifest, Permission, Selection } from "../manifest/function.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import type { DefinedResource } from "./kinds.ts";

type RulePath = RuleFault["path"];

/**
 * Returns the names in a manifest that a cluster does not serve, or serves without watch. Checks the kinds of its triggers and
 * reads, and the API groups and resources of its permissions. Names defined by a CustomResourceDefinition in the functions folder
 * count as served. Throws what discovery throws.
 */
export async function servedFaults(
  { triggers, reads, permissions }: FunctionManifest,
  discovery: Discovery,
  defined: readonly DefinedResource[],
): Promise<RuleFault[]> {
  const own = defined.flatMap(asServed);
  const faults: RuleFault[] = [];
  for (const [index, trigger] of triggers.entries()) {
    faults.push(...(await kindFaults(trigger, ["spec", "triggers", index, "watch"], discovery, own)));
  }
  for (const [index, read] of reads.entries()) {
    faults.push(...(await kindFaults(read, ["spec", "reads", index], discovery, own)));
  }
  const served = await discovery.served();
  if (served.length === 0) return faults;
  const all = [...served, ...own];
  return [...faults, ...permissions.flatMap((rule, index) => ruleFaults(rule, ["spec", "permissions", index], all))];
}

/** Returns a defined resource as the server will serve it; the subresources of its versions are assumed to exist. */
const asServed = ({ versions, ...names }: DefinedResource): GroupVersion[] =>
  versions.map((version) => {
    const resource = { ...names, version, verbs: ["list", "watch"], subresources: ["status", "scale"] };
    return { group: names.group, version, resources: [resource] };
  });

async function kindFaults(
  { apiVersion, kind, namespaces }: Selection,
  path: RulePath,
  discovery: Discovery,
  own: readonly GroupVersion[],
): Promise<RuleFault[]> {
  if (own.some((each) => apiVersionOf(each) === apiVersion && each.resources[0]?.kind === kind)) return [];
  const lookup = await discovery.resolve(apiVersion, kind);
  if (lookup.type === "NotServed") {
    const { unknown, hint } = lookup;
    const what = unknown === "kind" ? `${apiVersion} has no such kind` : "the API server does not serve it";
    return [{ code: "WF_MANIFEST_NOT_SERVED", path: [...path, unknown], what, ...(hint !== undefined && { hint }) }];
  }
  const { verbs, namespaced } = lookup.resource;
  if (!["list", "watch"].every((verb) => verbs.includes(verb))) {
    return [{ code: "WF_KUBE_NOT_WATCHABLE", path: [...path, "kind"], what: "it has no verbs list and watch" }];
  }
  if (!namespaced && namespaces.type !== "all") {
    return [
      { code: "WF_KUBE_CLUSTER_SCOPED", path: [...path, "namespaceSelector"], what: `${kind} is not in namespaces` },
    ];
  }
  return [];
}

function ruleFaults(
  { apiGroups, resources }: Permission,
  path: RulePath,
  served: readonly GroupVersion[],
): RuleFault[] {
  const groups = new Set(served.map(({ group }) => group));
  const unknown = apiGroups.flatMap((group, index): RuleFault[] => {
    if (group === "*" || groups.has(group)) return [];
    const what = "the API server does not serve the API group";
    return [
      { code: "WF_MANIFEST_NOT_SERVED", path: [...path, "apiGroups", index], what, ...hintOf(suggest(group, groups)) },
    ];
  });
  // With an unknown group, the resource's group is unknown too.
  if (unknown.length > 0) return unknown;
  const isNamed = ({ group }: GroupVersion): boolean => apiGroups.includes("*") || apiGroups.includes(group);
  const here = pathsOf(served.filter(isNamed));
  return resources.flatMap((resource, index): RuleFault[] => {
    if (resource.includes("*") || here.has(resource)) return [];
    const elsewhere = served.find((each) => pathsOf([each]).has(resource))?.group;
    return [
      {
        code: "WF_MANIFEST_NOT_SERVED",
        path: [...path, "resources", index],
        what: `the API server has no such resource in ${apiGroups.map((group) => group || '""').join(", ")}`,
        ...(elsewhere === undefined
          ? hintOf(suggest(resource, here))
          : { hint: `it is in the API group ${elsewhere || '""'}` }),
      },
    ];
  });
}

/** Returns the resources and subresources as rules name them: `deployments`, `deployments/scale`. */
const pathsOf = (served: readonly GroupVersion[]): ReadonlySet<string> =>
  new Set(
    served.flatMap(({ resources }) =>
      resources.flatMap(({ plural, subresources }) => [plural, ...subresources.map((sub) => `${plural}/${sub}`)]),
    ),
  );

const hintOf = (near: string | undefined): { hint?: string } =>
  near === undefined ? {} : { hint: `did you mean ${near}?` };
