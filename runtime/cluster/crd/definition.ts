import { type Fields, isFields, type KubeObject } from "../api/object.ts";
import { field, type ResourceType, type ScalePaths } from "../kinds/resource-type.ts";
import { asJson, asObject } from "../kinds/shape.ts";
import { applyDefaults, type JsonObject, type Schema, structuralSchema } from "../schema/index.ts";
import { customColumns } from "./columns.ts";

/** A CRD's names, complete. */
export interface Names {
  plural: string;
  singular: string;
  kind: string;
  listKind: string;
  shortNames: string[];
  categories: string[];
}

/** Verbs in the order in which the real server lists them for custom resources. */
const customVerbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/** Reads a CRD's names; it is complete by its defaults. */
export function namesOf(definition: KubeObject): Names {
  const names = fields(fields(definition.spec).names);
  const strings = (value: unknown) => (Array.isArray(value) ? value.map(String) : []);
  return {
    plural: String(names.plural ?? ""),
    singular: String(names.singular ?? ""),
    kind: String(names.kind ?? ""),
    listKind: String(names.listKind ?? ""),
    shortNames: strings(names.shortNames),
    categories: strings(names.categories),
  };
}

export function groupOf(definition: KubeObject): string {
  return String(fields(definition.spec).group ?? "");
}

/** The versions of a CRD, as it lists them. */
export function versionsOf(definition: KubeObject): Fields[] {
  const { versions } = fields(definition.spec);
  return Array.isArray(versions) ? versions.filter(isFields) : [];
}

/** The collection that holds a CRD's objects. */
export function storageOf(definition: KubeObject): string {
  return `${namesOf(definition).plural}.${groupOf(definition)}`;
}

/** What an established CRD serves: a resource per served version. */
export function servedTypes(definition: KubeObject): ResourceType[] {
  const names = namesOf(definition);
  const group = groupOf(definition);
  const storedVersion = String(versionsOf(definition).find(({ storage }) => storage === true)?.name ?? "");
  const { shortNames, categories, ...rest } = names;
  return versionsOf(definition)
    .filter(({ served }) => served === true)
    .map((version) => {
      const schema = lazily(version);
      const apiVersion = `${group}/${String(version.name)}`;
      return {
        ...rest,
        group,
        version: String(version.name),
        ...(shortNames.length > 0 ? { shortNames } : {}),
        ...(categories.length > 0 ? { categories } : {}),
        namespaced: fields(definition.spec).scope === "Namespaced",
        storage: storageOf(definition),
        custom: definition,
        verbs: customVerbs,
        columns: customColumns(version.additionalPrinterColumns),
        ...subresourcesOf(version),
        ...selectableFields(version),
        // Objects stored before a default was declared show it as soon as it is.
        fromStorage: (object) => withDefaults(schema(), { ...object, apiVersion }),
        toStorage: (object) => ({ ...object, apiVersion: `${group}/${storedVersion}` }),
        schema,
        ...warnings(version, `${apiVersion} ${names.kind}`),
      };
    });
}

function withDefaults(schema: Schema | undefined, object: KubeObject): KubeObject {
  return schema ? asObject(applyDefaults(schema, asJson(object))) : object;
}

function subresourcesOf(version: Fields): Pick<ResourceType, "status" | "scale"> {
  const { status, scale } = fields(version.subresources);
  const paths = fields(scale);
  const path = (name: string) => String(paths[name] ?? "").replace(/^\./, "");
  const scalePaths: ScalePaths = {
    spec: path("specReplicasPath"),
    status: path("statusReplicasPath"),
    ...(paths.labelSelectorPath ? { selector: path("labelSelectorPath") } : {}),
  };
  return { ...(status === undefined ? {} : { status: true }), ...(isFields(scale) ? { scale: scalePaths } : {}) };
}

function selectableFields(version: Fields): Pick<ResourceType, "fields"> {
  const list = Array.isArray(version.selectableFields) ? version.selectableFields.filter(isFields) : [];
  const paths = list.map(({ jsonPath }) => String(jsonPath).replace(/^\./, ""));
  return { fields: Object.fromEntries(paths.map((path) => [path, field(path)])) };
}

function warnings(version: Fields, name: string): Pick<ResourceType, "warn"> {
  if (version.deprecated !== true) return {};
  const text = String(version.deprecationWarning ?? `${name} is deprecated`);
  return { warn: () => [text] };
}

/** The structural schema, compiled when it is first needed. */
function lazily(version: Fields): () => Schema | undefined {
  let compiled: { schema?: Schema } | undefined;
  return () => {
    compiled ??= structuralSchema(fields(fields(version.schema).openAPIV3Schema) as JsonObject);
    return compiled.schema;
  };
}

function fields(value: unknown): Fields {
  return isFields(value) ? value : {};
}
