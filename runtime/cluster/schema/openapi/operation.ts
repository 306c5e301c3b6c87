import { type BuiltInResource, builtInResources, builtInSchemaName } from "../built-in.ts";
import type { SchemaKind } from "../schema.ts";
import { type CustomResource, definitionName } from "./custom-definition.ts";

/** One method of one path, before it is written in either version of OpenAPI. */
export interface Operation {
  readonly path: string;
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** The value of `x-kubernetes-action`. */
  readonly action: string;
  readonly id: string;
  readonly kind: SchemaKind;
  /** The OpenAPI names of the request's and the response's body; `undefined` without a body. */
  readonly body: string | undefined;
  readonly response: string | undefined;
  readonly query: readonly (readonly [name: string, type: "string" | "boolean" | "integer"])[];
}

interface Resource {
  readonly groupVersion: string;
  /** `deployments`, `deployments/scale` */
  readonly name: string;
  readonly namespaced: boolean;
  /** The kind of the object. */
  readonly kind: SchemaKind;
  /** The kind that a subresource belongs to. */
  readonly owner: string;
  readonly definition: string | undefined;
  readonly list: string | undefined;
  readonly verbs: readonly string[];
}

type Query = Operation["query"];

const meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
const writing: Query = [
  ["dryRun", "string"],
  ["fieldManager", "string"],
  ["fieldValidation", "string"],
];
const listing: Query = [
  ["allowWatchBookmarks", "boolean"],
  ["continue", "string"],
  ["fieldSelector", "string"],
  ["labelSelector", "string"],
  ["limit", "integer"],
  ["resourceVersion", "string"],
  ["resourceVersionMatch", "string"],
  ["sendInitialEvents", "boolean"],
  ["timeoutSeconds", "integer"],
  ["watch", "boolean"],
];
const deleting: Query = [
  ["dryRun", "string"],
  ["gracePeriodSeconds", "integer"],
  ["orphanDependents", "boolean"],
  ["propagationPolicy", "string"],
];

/** The operations of a group-version's resources for which `isServed` returns true. */
export function operationsOf(
  groupVersion: string,
  customResources: readonly CustomResource[],
  isServed: (groupVersion: string, resource: string) => boolean,
): Operation[] {
  const builtIn = builtInResources(groupVersion).map((resource) => fromBuiltIn(groupVersion, resource));
  const served = builtIn.filter(({ name }) => isServed(groupVersion, name));
  const custom = customResources.filter(({ group, version }) => `${group}/${version}` === groupVersion);
  return [...served, ...custom.flatMap(fromCustom)].flatMap(operations);
}

function fromBuiltIn(groupVersion: string, resource: BuiltInResource): Resource {
  const [ownVersion = "", ownGroup = ""] = groupVersion.split("/").reverse();
  const { name, namespaced, kind, verbs, group = ownGroup, version = ownVersion } = resource;
  return {
    groupVersion,
    name,
    namespaced,
    verbs,
    kind: { group, version, kind },
    owner: builtInResources(groupVersion).find((other) => other.name === name.split("/")[0])?.kind ?? kind,
    definition: builtInSchemaName(group, version, kind),
    list: builtInSchemaName(group, version, `${kind}List`),
  };
}

function fromCustom(resource: CustomResource): Resource[] {
  const { group, version, kind, plural, namespaced, subresources } = resource;
  const definition = definitionName(resource, kind);
  const whole = {
    groupVersion: `${group}/${version}`,
    name: plural,
    namespaced,
    kind: { group, version, kind },
    owner: kind,
    definition,
    list: definitionName(resource, resource.listKind),
    verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
  };
  const part = { ...whole, verbs: ["get", "patch", "update"] };
  return [
    whole,
    ...(subresources.status ? [{ ...part, name: `${plural}/status` }] : []),
    ...(subresources.scale
      ? [{ ...part, name: `${plural}/scale`, definition: builtInSchemaName("autoscaling", "v1", "Scale") }]
      : []),
  ];
}

function operations(resource: Resource): Operation[] {
  const { groupVersion, namespaced, verbs, definition, list, kind } = resource;
  const [plural = "", part = ""] = resource.name.split("/");
  const root = groupVersion === "v1" ? "/api/v1" : `/apis/${groupVersion}`;
  const collection = `${root}${namespaced ? "/namespaces/{namespace}" : ""}/${plural}`;
  const item = `${collection}/{name}${part && `/${part}`}`;
  const scope = namespaced ? "Namespaced" : "";
  const name = `${camel(groupVersion === "v1" ? "core/v1" : groupVersion)}`;
  const of = `${resource.owner}${part && camel(part)}`;
  const status = `${meta}.Status`;
  const all: Operation[] = [];
  const add = (
    verb: string,
    operation: Pick<Operation, "path" | "method" | "action" | "id" | "query"> & Partial<Operation>,
  ): void => {
    if (verbs.includes(verb)) all.push({ kind, body: undefined, response: definition, ...operation });
  };
  if (part === "") {
    const listed = { method: "get", action: "list", query: listing, response: list } as const;
    add("list", { ...listed, path: collection, id: `list${name}${scope}${of}` });
    if (namespaced) add("list", { ...listed, path: `${root}/${plural}`, id: `list${name}${of}ForAllNamespaces` });
    add("deletecollection", {
      path: collection,
      method: "delete",
      action: "deletecollection",
      id: `delete${name}Collection${scope}${of}`,
      query: [...deleting, ["labelSelector", "string"], ["fieldSelector", "string"]],
      body: `${meta}.DeleteOptions`,
      response: status,
    });
  }
  const post = { method: "post", action: "post", query: writing, body: definition } as const;
  add("create", { ...post, path: part === "" ? collection : item, id: `create${name}${scope}${of}` });
  add("get", { path: item, method: "get", action: "get", id: `read${name}${scope}${of}`, query: [] });
  const put = { method: "put", action: "put", query: writing, body: definition } as const;
  add("update", { ...put, path: item, id: `replace${name}${scope}${of}` });
  const patch = { method: "patch", action: "patch", body: `${meta}.Patch` } as const;
  add("patch", { ...patch, path: item, id: `patch${name}${scope}${of}`, query: [...writing, ["force", "boolean"]] });
  const remove = { method: "delete", action: "delete", query: deleting, response: status } as const;
  add("delete", { ...remove, path: item, id: `delete${name}${scope}${of}`, body: `${meta}.DeleteOptions` });
  return all;
}

function camel(text: string): string {
  return text
    .replace(/\.k8s\.io\//, "/")
    .split(/[^a-zA-Z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}
