import { groupOf, namesOf, storageOf, versionsOf } from "../api/definition.ts";
import { type Fields, fieldsOf, isFields, type KubeObject } from "../api/object.ts";
import { field, type ResourceType, type ScalePaths } from "../kinds/resource-type.ts";
import { asJson, asObject } from "../kinds/shape.ts";
import { applyDefaults, type JsonObject, type Schema, structuralSchema } from "../schema/index.ts";
import { customColumns } from "./columns.ts";

/** Verbs in the order in which the real server lists them for custom resources. */
const customVerbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/** The resource types that an established CRD serves, one for each served version. */
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
        namespaced: fieldsOf(definition.spec).scope === "Namespaced",
        storage: storageOf(definition),
        custom: definition,
        verbs: customVerbs,
        columns: customColumns(version.additionalPrinterColumns),
        ...subresourcesOf(version),
        ...selectableFields(version),
        // An object stored before a default was declared shows the default as soon as it is declared.
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
  const { status, scale } = fieldsOf(version.subresources);
  const paths = fieldsOf(scale);
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

/** Compiles the structural schema when it is first needed. */
function lazily(version: Fields): () => Schema | undefined {
  let compiled: { schema?: Schema } | undefined;
  return () => {
    const stored = fieldsOf(fieldsOf(version.schema).openAPIV3Schema) as JsonObject;
    compiled ??= structuralSchema(stored, undefined, true);
    return compiled.schema;
  };
}
