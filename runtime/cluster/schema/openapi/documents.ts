import { createHash } from "node:crypto";
import { encodeJson } from "../../exact-json.ts";
import { builtInData, builtInResources } from "../built-in.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import { type CustomResource, customDefinitions, toV2 } from "./custom-definition.ts";
import { type Operation, operationsOf } from "./operation.ts";
import { pathsV2, pathsV3 } from "./paths.ts";

export type { CustomResource } from "./custom-definition.ts";

/** Selects the built-in resources that a server serves. Default: all that the real server has. */
type IsServed = (groupVersion: string, resource: string) => boolean;

const everything: IsServed = () => true;
const v3Prefix = "#/components/schemas/";
const v2Prefix = "#/definitions/";

function groupVersions(customResources: readonly CustomResource[], isServed: IsServed): string[] {
  const builtIn = Object.keys(builtInData().resources).filter((groupVersion) =>
    builtInResources(groupVersion).some(({ name }) => isServed(groupVersion, name)),
  );
  return [...new Set([...builtIn, ...customResources.map(({ group, version }) => `${group}/${version}`)])].sort();
}

/** The document at `/openapi/v3`: the path of each group-version's document, with a hash that changes with its content. */
export function openApiV3Index(customResources: readonly CustomResource[], isServed = everything): JsonObject {
  const paths: JsonObject = {};
  for (const groupVersion of groupVersions(customResources, isServed)) {
    const own = customResources.filter(({ group, version }) => `${group}/${version}` === groupVersion);
    const served = builtInResources(groupVersion).filter(({ name }) => isServed(groupVersion, name));
    const what = encodeJson([builtInData().gitVersion, own, served.map(({ name }) => name)]);
    const hash = createHash("sha256").update(what).digest("hex").toUpperCase();
    const path = groupVersion === "v1" ? "api/v1" : `apis/${groupVersion}`;
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
  }
  return { paths };
}

/**
 * The document at `/openapi/v3/api/v1` or `/openapi/v3/apis/<group>/<version>`, for `v1` or `<group>/<version>`;
 * undefined for a group-version that is not served.
 */
export function openApiV3(
  groupVersion: string,
  customResources: readonly CustomResource[],
  isServed = everything,
): JsonObject | undefined {
  const operations = operationsOf(groupVersion, customResources, isServed);
  if (operations.length === 0) return undefined;
  const own = customResources.filter(({ group, version }) => `${group}/${version}` === groupVersion);
  const schemas = definitions(operations, own, (schema) => schema);
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: builtInData().gitVersion },
    paths: pathsV3(operations, v3Prefix),
    components: { schemas: prefixed(schemas, v3Prefix) },
  };
}

/** The document at `/openapi/v2`: everything in one. */
export function openApiV2(customResources: readonly CustomResource[], isServed = everything): JsonObject {
  const operations = groupVersions(customResources, isServed).flatMap((groupVersion) =>
    operationsOf(groupVersion, customResources, isServed),
  );
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: builtInData().gitVersion },
    paths: pathsV2(operations, v2Prefix),
    definitions: prefixed(definitions(operations, customResources, toV2), v2Prefix),
  };
}

/** Returns the definitions that the operations use, each formatted by `write`. */
function definitions(
  operations: readonly Operation[],
  customResources: readonly CustomResource[],
  write: (schema: JsonObject) => JsonObject,
): JsonObject {
  const custom: Record<string, JsonObject> = Object.assign({}, ...customResources.map(customDefinitions));
  const all: Readonly<Record<string, JsonObject>> = {
    ...builtInData().schemas,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": { type: "object" },
    ...custom,
  };
  const reached = new Map<string, JsonObject>();
  const reach = (name: string): void => {
    const schema = all[name];
    if (!schema || reached.has(name)) return;
    reached.set(name, write(schema));
    for (const reference of references(schema)) reach(reference);
  };
  for (const { body, response } of operations) {
    if (body !== undefined) reach(body);
    if (response !== undefined) reach(response);
  }
  return Object.fromEntries([...reached].sort(([left], [right]) => (left < right ? -1 : 1)));
}

function* references(node: Json): Generator<string> {
  if (Array.isArray(node)) for (const item of node) yield* references(item);
  else if (isObject(node)) {
    if (typeof node.$ref === "string") yield node.$ref.slice("#/".length);
    for (const child of Object.values(node)) yield* references(child);
  }
}

/** Adds the prefix to each reference `#/<name>`. */
function prefixed<Node extends Json>(node: Node, prefix: string): Node {
  const walk = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(walk);
    if (!isObject(value)) return value;
    const entries = Object.entries(value).map(([name, child]): [string, Json] =>
      name === "$ref" && typeof child === "string" ? [name, prefix + child.slice("#/".length)] : [name, walk(child)],
    );
    return Object.fromEntries(entries);
  };
  return walk(node) as Node;
}
