import { suggest } from "../base/suggest.ts";
import { builtInTable } from "../kube/built-in-kinds.ts";
import type { FunctionManifest, Permission, Selection } from "../manifest/function.ts";
import type { RuleFault } from "../manifest/rule-fault.ts";
import { placeOfWatch } from "../manifest/schedule.ts";
import type { DefinedResource } from "./kinds.ts";

type FaultPath = RuleFault["path"];

/**
 * Resources of Kubernetes that cannot be watched, or that exist only in rules (`users` are impersonated, `signers` approved for).
 */
const unwatched: Readonly<Record<string, readonly string[]>> = {
  "": ["bindings", "componentstatuses", "groups", "users"],
  "certificates.k8s.io": ["signers"],
};

/**
 * Returns warnings for names in a manifest that Kubernetes' own API groups are not known to have, without asking a cluster. They
 * are only warnings, because a newer Kubernetes may serve more. Other groups are not checked, nor names defined by
 * CustomResourceDefinitions in the functions folder.
 */
export function builtInWarnings(
  {
    triggers,
    schedules,
    reads,
    permissions,
  }: Pick<FunctionManifest, "triggers" | "schedules" | "reads" | "permissions">,
  defined: readonly DefinedResource[],
): RuleFault[] {
  return [
    ...triggers.flatMap((trigger, index) =>
      kindWarnings(trigger, ["spec", "triggers", placeOfWatch({ schedules }, index), "watch"], defined),
    ),
    ...reads.flatMap((read, index) => kindWarnings(read, ["spec", "reads", index], defined)),
    ...permissions.flatMap((rule, index) => ruleWarnings(rule, ["spec", "permissions", index], defined)),
  ];
}

function kindWarnings(
  { apiVersion, kind }: Selection,
  path: FaultPath,
  defined: readonly DefinedResource[],
): RuleFault[] {
  const kinds = builtInTable[apiVersion];
  if (isShortened(groupOf(apiVersion))) {
    const meant = Object.entries(builtInTable).find(([, each]) => each[kind])?.[0];
    const hint = meant === undefined ? {} : { hint: `${kind} is in ${meant}` };
    return [{ code: "WF_MANIFEST_NOT_BUILT_IN", path: [...path, "apiVersion"], what: noSuchGroup, ...hint }];
  }
  if (kinds?.[kind]) return [];
  const elsewhere = Object.entries(builtInTable).findLast(([, each]) => each[kind])?.[0];
  // An unknown version is reported only if a known version of its group has the kind.
  if (!kinds && (elsewhere === undefined || groupOf(elsewhere) !== groupOf(apiVersion))) return [];
  if (defined.some((each) => each.kind === kind && each.group === groupOf(apiVersion))) return [];
  if (!kinds) {
    const what = "Kubernetes is not known to serve this version";
    const hint = `${kind} is in ${elsewhere}`;
    return [{ code: "WF_MANIFEST_NOT_BUILT_IN", path: [...path, "apiVersion"], what, hint }];
  }
  const what = `${apiVersion} is not known to have such a kind to watch`;
  if (elsewhere !== undefined) {
    const hint = `${kind} is in ${elsewhere}`;
    return [{ code: "WF_MANIFEST_NOT_BUILT_IN", path: [...path, "kind"], what, hint }];
  }
  return [{ code: "WF_MANIFEST_NOT_BUILT_IN", path: [...path, "kind"], what, ...near(kind, Object.keys(kinds)) }];
}

function ruleWarnings(
  { apiGroups, resources }: Permission,
  path: FaultPath,
  defined: readonly DefinedResource[],
): RuleFault[] {
  const shortened = apiGroups.flatMap((group, index): RuleFault[] => {
    if (!isShortened(group)) return [];
    const meant = [...plurals.keys()].find((each) => each.startsWith(`${group}.`));
    const hint = meant === undefined ? {} : { hint: `did you mean ${meant}?` };
    return [{ code: "WF_MANIFEST_NOT_BUILT_IN", path: [...path, "apiGroups", index], what: noSuchGroup, ...hint }];
  });
  if (shortened.length > 0) return shortened;
  // If any of the groups is not Kubernetes' own, it may have the resource.
  if (!apiGroups.every((group) => plurals.has(group))) return [];
  const here = apiGroups.flatMap((group) => plurals.get(group) ?? []);
  const more = apiGroups.flatMap((group) => unwatched[group] ?? []);
  const own = defined.filter(({ group }) => apiGroups.includes(group)).map(({ plural }) => plural);
  const known = new Set([...here, ...more, ...own]);
  return resources.flatMap((resource, index): RuleFault[] => {
    const [plural = ""] = resource.split("/");
    if (plural.includes("*") || known.has(plural)) return [];
    const elsewhere = [...plurals].find(([, each]) => each.includes(plural))?.[0];
    return [
      {
        code: "WF_MANIFEST_NOT_BUILT_IN",
        path: [...path, "resources", index],
        what: `${apiGroups.map((group) => group || '""').join(", ")} is not known to have such a resource`,
        ...(elsewhere === undefined ? near(plural, known) : { hint: `it is in the API group ${elsewhere || '""'}` }),
      },
    ];
  });
}

const groupOf = (apiVersion: string): string => (apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "");

/** The resources that can be watched, by API group. */
const plurals: ReadonlyMap<string, readonly string[]> = new Map(
  [...Map.groupBy(Object.entries(builtInTable), ([apiVersion]) => groupOf(apiVersion))].map(([group, entries]) => [
    group,
    entries.flatMap(([, kinds]) => Object.values(kinds).map(([plural]) => plural)),
  ]),
);

const noSuchGroup = "Kubernetes is not known to have such an API group";

/**
 * Whether a group is neither built in nor dotted. The API server requires a dot in a definition's group, so such a group has
 * probably lost its end.
 */
const isShortened = (group: string): boolean => /^[^.*]+$/.test(group) && !plurals.has(group);

function near(word: string, known: Iterable<string>): { hint?: string } {
  const meant = suggest(word, known);
  return meant === undefined ? {} : { hint: `did you mean ${meant}?` };
}
