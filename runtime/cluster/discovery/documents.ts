import { createHash } from "node:crypto";
import { apiVersionOf } from "../api/object.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import type { ResourceType } from "../kinds/resource-type.ts";
import { byPriority, type Group, groups, subresources } from "./resources.ts";

/** `/api`. */
export function coreVersions(address: string): unknown {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
  };
}

/** `/apis`. */
export function groupList(registry: Registry): unknown {
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups(registry).map(groupEntry) };
}

/** `/apis/<group>`; `undefined` if the group does not exist. */
export function groupDocument(registry: Registry, name: string): unknown {
  const group = groups(registry).find((one) => one.name === name);
  return group && { kind: "APIGroup", apiVersion: "v1", ...groupEntry(group) };
}

function groupEntry({ name, versions }: Group) {
  const entries = versions.map((version) => ({ groupVersion: apiVersionOf(name, version), version }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

/** `/api/v1` and `/apis/<group>/<version>`; `undefined` if the version is not served. */
export function resourceList(registry: Registry, group: string, version: string): unknown {
  const types = registry.all().filter((type) => type.group === group && type.version === version);
  if (types.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: apiVersionOf(group, version),
    resources: types.sort(byPlural).flatMap(resourceEntries),
  };
}

const byPlural = (left: ResourceType, right: ResourceType) => (left.plural < right.plural ? -1 : 1);

function resourceEntries(type: ResourceType): unknown[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories } = type;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames ? { shortNames } : {}),
      ...(categories ? { categories } : {}),
      ...(verbs.includes("list") ? { storageVersionHash: hash(`${type.storage}/${type.version}`) } : {}),
    },
    ...subresources(type).map((sub) => ({
      name: `${plural}/${sub.name}`,
      singularName: "",
      namespaced,
      ...(sub.group === "" ? {} : { group: sub.group, version: sub.version }),
      kind: sub.kind,
      verbs: sub.verbs,
    })),
  ];
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest().subarray(0, 8).toString("base64");
}

/** The aggregated form of `/api` (core true) and `/apis`, as apidiscovery.k8s.io/v2 or v2beta1. */
export function aggregated(registry: Registry, core: boolean, version: string): { document: unknown; etag: string } {
  const all: Group[] = core ? [{ name: "", versions: ["v1"] }] : groups(registry);
  const types = registry.all();
  const document = {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: all.map((group) => ({
      metadata: group.name === "" ? {} : { name: group.name },
      versions: group.versions.sort(byPriority).map((one) => ({
        version: one,
        resources: types
          .filter((type) => type.group === group.name && type.version === one)
          .sort(byPlural)
          .map(aggregatedResource),
        freshness: "Current",
      })),
    })),
  };
  return { document, etag: createHash("sha512").update(JSON.stringify(document)).digest("hex").toUpperCase() };
}

function aggregatedResource(type: ResourceType): unknown {
  const { group, version, plural, kind, namespaced, singular, verbs, shortNames, categories } = type;
  const subs = subresources(type);
  // Custom resources state their group and version; built-in ones leave them empty, as in the real server.
  const own = type.custom ? { group, version } : { group: "", version: "" };
  return {
    resource: plural,
    responseKind: { ...own, kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
    ...(shortNames ? { shortNames } : {}),
    ...(categories ? { categories } : {}),
    ...(subs.length === 0
      ? {}
      : {
          subresources: subs.map((sub) => ({
            subresource: sub.name,
            responseKind: { ...(sub.group === "" ? own : { group: sub.group, version: sub.version }), kind: sub.kind },
            verbs: sub.verbs,
          })),
        }),
  };
}
