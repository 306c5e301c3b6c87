import { readFileSync } from "node:fs";
import { isObject, type Json, type JsonObject } from "./json.ts";
import type { Schema } from "./schema.ts";

/** A resource in discovery. The `name` of a subresource contains a slash (`deployments/scale`). */
export interface BuiltInResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  /** Group and version of the kind, if they differ from the list's: `autoscaling` and `v1` for a Scale. */
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

interface Data {
  readonly gitVersion: string;
  /** By group-version: `v1`, `apps/v1`. */
  readonly resources: Readonly<Record<string, readonly BuiltInResource[]>>;
  /** By OpenAPI name; a reference is `#/<name>`. */
  readonly schemas: Readonly<Record<string, JsonObject>>;
}

type Draft = { -readonly [Key in keyof Schema]: Schema[Key] };

let data: Data | undefined;
let namesByKind: Map<string, string> | undefined;
const linked = new Map<string, Draft>();

/** The data that openapi/refresh.ts extracted from a real API server; read and parsed on first use (about 3 ms). */
export function builtInData(): Data {
  data ??= JSON.parse(readFileSync(new URL("../openapi/kubernetes.json", import.meta.url), "utf8")) as Data;
  return data;
}

/**
 * The resources that the real API server serves in a group-version (`v1`, `apps/v1`), subresources included. Empty for an unknown
 * group-version.
 */
export function builtInResources(groupVersion: string): readonly BuiltInResource[] {
  return builtInData().resources[groupVersion] ?? [];
}

/** The OpenAPI name of a kind, such as `io.k8s.api.apps.v1.Deployment`. */
export function builtInSchemaName(group: string, version: string, kind: string): string | undefined {
  if (!namesByKind) {
    namesByKind = new Map();
    for (const [name, schema] of Object.entries(builtInData().schemas)) {
      const kinds = schema["x-kubernetes-group-version-kind"];
      for (const entry of Array.isArray(kinds) ? kinds : []) {
        if (isObject(entry)) namesByKind.set(`${entry.group}/${entry.version}/${entry.kind}`, name);
      }
    }
  }
  return namesByKind.get(`${group}/${version}/${kind}`);
}

/** The schema of a kind that the real API server has; `undefined` for any other. `group` is "" for core. */
export function builtInSchema(group: string, version: string, kind: string): Schema | undefined {
  const name = builtInSchemaName(group, version, kind);
  return name === undefined ? undefined : namedSchema(name);
}

/**
 * The schema with that OpenAPI name. Its references, which may lead back to it, are resolved. Throws if there is no such schema.
 */
export function namedSchema(name: string): Schema {
  const postponed: (() => void)[] = [];
  const schema = link(name, postponed);
  for (const fill of postponed) fill();
  return schema;
}

function link(name: string, postponed: (() => void)[]): Draft {
  const known = linked.get(name);
  if (known) return known;
  const source = builtInData().schemas[name];
  if (!source) throw new Error(`the built-in schemas have no ${name}`);
  const schema: Draft = {};
  linked.set(name, schema);
  Object.assign(schema, convert(source, postponed), freeForm(name, source));
  const mayBeEmpty = emptyTexts[name];
  if (mayBeEmpty) schema.required = (schema.required ?? []).filter((field) => !mayBeEmpty.includes(field));
  if (name.endsWith(".MicroTime")) schema.format = microTime;
  if (name.endsWith(schemaOrBool)) {
    // The data does not describe this type: a boolean, or an object with the fields of a schema.
    const target = link(name.slice(0, -"OrBool".length), postponed);
    postponed.push(() => Object.assign(schema, target.properties && { properties: target.properties }));
  }
  return schema;
}

/** Required texts that may be "", which Go does not distinguish from a missing one. */
const emptyTexts: Readonly<Record<string, readonly string[]>> = {
  "io.k8s.api.core.v1.HTTPHeader": ["value"],
  "io.k8s.api.core.v1.Sysctl": ["value"],
  // The owners of an object are checked with its metadata, and those of a template not at all.
  "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference": ["apiVersion", "kind", "name", "uid"],
  // Code checks the sources of a claim, some of which are dropped before.
  "io.k8s.api.core.v1.TypedLocalObjectReference": ["kind", "name"],
  "io.k8s.api.core.v1.TypedObjectReference": ["kind", "name"],
};

/** The format of a time with six digits after its seconds, which the data does not distinguish from other times. */
export const microTime = "micro-time";

const schemaOrBool = ".JSONSchemaPropsOrBool";

/** Structures whose fields the schema does not list preserve unknown fields. */
function freeForm(name: string, source: JsonObject): Draft {
  const open = source.properties === undefined && (source.type === "object" || Object.keys(source).length === 0);
  const typed = name.endsWith(schemaOrBool) || name.endsWith(".CustomResourceSubresourceStatus");
  return open && !typed ? { "x-kubernetes-preserve-unknown-fields": true } : {};
}

function convert(source: JsonObject, postponed: (() => void)[]): Draft {
  if (typeof source.$ref === "string") return link(source.$ref.slice(2), postponed);
  const { allOf, oneOf, ...rest } = source;
  const schema: Draft = { ...(rest as Draft), builtIn: true };
  if (oneOf) {
    // IntOrString and Quantity are the only unions.
    if (source.format === "int-or-string") schema["x-kubernetes-int-or-string"] = true;
    else schema.format = "quantity";
  }
  const [reference] = Array.isArray(allOf) ? allOf : [];
  if (isObject(reference) && typeof reference.$ref === "string") {
    // A reference that has further keywords. It is copied once its target, which may contain this schema, is complete.
    const target = link(reference.$ref.slice(2), postponed);
    const own = { ...schema };
    postponed.push(() => Object.assign(schema, target, own));
  }
  if (isObject(source.items)) schema.items = convert(source.items, postponed);
  if (isObject(source.additionalProperties)) {
    schema.additionalProperties = convert(source.additionalProperties, postponed);
  }
  if (isObject(source.properties)) {
    const properties = Object.entries(source.properties).map(
      ([key, child]: [string, Json]) => [key, isObject(child) ? convert(child, postponed) : {}] as const,
    );
    schema.properties = Object.fromEntries(properties);
  }
  return schema;
}
