import type { Registry } from "../kinds/registry/registry.ts";
import type { ResourceType } from "../kinds/resource-type.ts";

/** A subresource as discovery lists it. */
interface SubresourceType {
  name: string;
  kind: string;
  group: string;
  version: string;
  verbs: readonly string[];
}

const objectVerbs = ["get", "patch", "update"];
const own = { group: "", version: "" };

/** Subresources of single resources, by `<plural>.<group>`. */
const special: Record<string, SubresourceType[]> = {
  "serviceaccounts.": [
    { name: "token", kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: ["create"] },
  ],
  "pods.": [
    { name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: ["create"] },
    { name: "binding", kind: "Binding", ...own, verbs: ["create"] },
    { name: "resize", kind: "Pod", ...own, verbs: objectVerbs },
  ],
  "namespaces.": [{ name: "finalize", kind: "Namespace", ...own, verbs: ["update"] }],
};

/** The subresources that a resource serves. */
export function subresources(type: ResourceType): SubresourceType[] {
  const all = [...(special[`${type.plural}.${type.group}`] ?? [])];
  if (type.scale) all.push({ name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: objectVerbs });
  if (type.status) all.push({ name: "status", kind: type.kind, ...own, verbs: objectVerbs });
  return all;
}

/** A served group with its versions, in order of preference. */
export interface Group {
  name: string;
  versions: string[];
}

/** The groups in the order of the real server: its own first, then custom ones by name. The core group is left out. */
export function groups(registry: Registry): Group[] {
  const byName = new Map<string, Set<string>>();
  const custom = new Set<string>();
  for (const type of registry.all()) {
    if (type.group === "") continue;
    const versions = byName.get(type.group) ?? new Set();
    byName.set(type.group, versions.add(type.version));
    if (type.custom) custom.add(type.group);
  }
  const list = [...byName].map(([name, versions]) => ({ name, versions: [...versions].sort(byPriority) }));
  const customs = list.filter(({ name }) => custom.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...list.filter(({ name }) => !custom.has(name)), ...customs];
}

/** Kubernetes' order of versions: stable before beta before alpha, newer before older, others last by name. */
export function byPriority(left: string, right: string): number {
  const [a, b] = [rank(left), rank(right)];
  if (!a || !b) return a ? -1 : b ? 1 : left < right ? -1 : 1;
  return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
}

function rank(version: string): [number, number, number] | undefined {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (!match) return undefined;
  const stage = match[2] === "alpha" ? 0 : match[2] === "beta" ? 1 : 2;
  return [stage, Number(match[1]), Number(match[3] ?? 0)];
}
