import { isObject, type Json, type JsonObject } from "../json.ts";

/** A served version of a custom resource, as the OpenAPI documents need it. */
export interface CustomResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly subresources: { readonly status: boolean; readonly scale: boolean };
  /** `schema.openAPIV3Schema` of the CRD. Default: any value is allowed. */
  readonly openAPIV3Schema?: JsonObject | undefined;
}

const anything: JsonObject = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const meta = "#/io.k8s.apimachinery.pkg.apis.meta.v1";

/** The OpenAPI name of a custom resource's kind or list: `domain.my.v1.MyApp`. */
export function definitionName({ group, version }: CustomResource, kind: string): string {
  return `${group.split(".").reverse().join(".")}.${version}.${kind}`;
}

/** Returns the definitions of a custom resource and its list by name, in OpenAPI v3; references are `#/<name>`. */
export function customDefinitions(resource: CustomResource): Record<string, JsonObject> {
  const { group, version, kind, listKind } = resource;
  const name = definitionName(resource, kind);
  const whole = embed(publish(resource.openAPIV3Schema ?? anything), "ObjectMeta");
  const list: JsonObject = {
    type: "object",
    required: ["items"],
    properties: { items: { type: "array", items: { $ref: `#/${name}` } } },
  };
  return {
    [name]: { ...whole, "x-kubernetes-group-version-kind": [{ group, version, kind }] },
    [definitionName(resource, listKind)]: {
      ...embed(list, "ListMeta"),
      "x-kubernetes-group-version-kind": [{ group, version, kind: listKind }],
    },
  };
}

/** Adds the fields that every resource has to the schema of a resource. */
function embed(schema: JsonObject, metadata: "ObjectMeta" | "ListMeta"): JsonObject {
  const own = {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { allOf: [{ $ref: `${meta}.${metadata}` }] },
  };
  return { ...schema, properties: { ...(isObject(schema.properties) ? schema.properties : {}), ...own } };
}

function publish(schema: JsonObject): JsonObject {
  const published = mapSchemas(schema, publish);
  if (published["x-kubernetes-int-or-string"] && !published.anyOf && !published.allOf) {
    published.anyOf = [{ type: "integer" }, { type: "string" }];
  }
  return published["x-kubernetes-embedded-resource"] ? embed(published, "ObjectMeta") : published;
}

/** Applies `change` to each schema of an object's fields or a list's items. */
function mapSchemas(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const changed: JsonObject = { ...schema };
  const child = (value: Json): Json => (isObject(value) ? change(value) : value);
  if (isObject(schema.properties)) {
    changed.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, value]) => [name, child(value)]),
    );
  }
  if (schema.items !== undefined) changed.items = child(schema.items);
  if (schema.additionalProperties !== undefined) changed.additionalProperties = child(schema.additionalProperties);
  return changed;
}

/** Converts a schema to OpenAPI v2, which has no unions, nulls and defaults. */
export function toV2(schema: JsonObject): JsonObject {
  const { allOf, anyOf: _any, oneOf, not: _not, default: _default, nullable, ...rest } = schema;
  const [reference] = Array.isArray(allOf) ? allOf : [];
  if (isObject(reference) && reference.$ref !== undefined) return { ...rest, $ref: reference.$ref };
  if (Array.isArray(oneOf) && rest.type === undefined) return { type: "string", ...rest };
  const { type: _type, items: _items, properties: _properties, ...open } = rest;
  if (rest["x-kubernetes-int-or-string"] || nullable) return open;
  if (rest["x-kubernetes-preserve-unknown-fields"] && !rest["x-kubernetes-group-version-kind"]) return open;
  return mapSchemas(rest, toV2);
}
