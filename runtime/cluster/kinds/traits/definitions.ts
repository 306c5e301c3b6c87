import { isDeepStrictEqual } from "node:util";
import { groupOf, namesOf, versionsOf } from "../../api/definition.ts";
import { at, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { type JsonObject, statusCauses, structuralSchema } from "../../schema/index.ts";
import { nameFaults } from "../names.ts";
import type { Traits } from "../resource-type.ts";
import { columnFaults, conversionFaults, servingFaults } from "./definition-faults.ts";
import { items, made, otherwise } from "./pod-spec.ts";

/** Defaults and validation of CRDs. */
export const customResourceDefinition: Traits = {
  status: true,
  generation: true,
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  prepare(object, old) {
    const spec = made(object, "spec");
    const names = made(spec, "names");
    if (typeof names.kind === "string") {
      otherwise(names, "singular", names.kind.toLowerCase());
      otherwise(names, "listKind", `${names.kind}List`);
    }
    otherwise(made(spec, "conversion"), "strategy", "None");
    const service = at(spec, "conversion.webhook.clientConfig.service");
    if (isFields(service)) otherwise(service, "port", 443);
    dropZeroValues(spec);
    if (old) return;
    const stored = versionsOf(object).find(({ storage }) => storage === true)?.name;
    object.status = {
      conditions: null,
      acceptedNames: { plural: "", kind: "" },
      storedVersions: stored === undefined ? [] : [stored],
    };
  },
  check: (object, old) => [
    ...nameCheck(object),
    ...(isFields(object.spec) ? specFaults(object, object.spec, old) : [fault.required("spec")]),
    ...changeFaults(object, old),
  ],
};

/** Fields that Go leaves out if they have their zero value, or if they are null. */
const omittedFlags = [
  ...["nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"],
  ...["x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"],
];
const omittedTexts = ["title", "description", "format", "pattern", "id", "$schema", "type"];
const omittedRuleTexts = ["message", "messageExpression", "fieldPath"];

/** Removes what the real server does not store of a definition: flags that are false, empty texts, defaults that are null. */
function dropZeroValues(spec: Fields): void {
  if (spec.preserveUnknownFields === false) delete spec.preserveUnknownFields;
  for (const version of items(spec, "versions")) {
    if (version.deprecated === false) delete version.deprecated;
    for (const column of items(version, "additionalPrinterColumns")) {
      for (const name of ["description", "format"]) if (column[name] === "") delete column[name];
      if (column.priority === 0) delete column.priority;
    }
    dropZeroKeywords(fieldsOf(version.schema).openAPIV3Schema);
  }
}

function dropZeroKeywords(schema: unknown): void {
  if (!isFields(schema)) return;
  for (const name of omittedFlags) if (schema[name] === false) delete schema[name];
  for (const name of omittedTexts) if (schema[name] === "") delete schema[name];
  for (const name of ["default", "example"]) if (schema[name] === null) delete schema[name];
  for (const rule of items(schema, "x-kubernetes-validations"))
    for (const name of omittedRuleTexts) if (rule[name] === "") delete rule[name];
  for (const name of ["properties", "patternProperties", "definitions"])
    for (const child of Object.values(fieldsOf(schema[name]))) dropZeroKeywords(child);
  for (const name of ["allOf", "anyOf", "oneOf"]) for (const child of items(schema, name)) dropZeroKeywords(child);
  for (const name of ["items", "additionalProperties", "not"]) dropZeroKeywords(schema[name]);
}

function nameCheck(object: KubeObject): FieldFault[] {
  const expected = `${namesOf(object).plural}.${groupOf(object)}`;
  const { name } = object.metadata;
  return name === expected ? [] : [fault.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')];
}

function specFaults(object: KubeObject, spec: Fields, old: KubeObject | undefined): FieldFault[] {
  const faults: FieldFault[] = [];
  const group = groupOf(object);
  if (group === "") faults.push(fault.required("spec.group"));
  else {
    for (const text of nameFaults("subdomain", group)) faults.push(fault.invalid("spec.group", group, text));
    if (!group.includes("."))
      faults.push(fault.invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  if (spec.scope !== "Namespaced" && spec.scope !== "Cluster")
    faults.push(
      spec.scope
        ? fault.unsupported("spec.scope", spec.scope, ["Cluster", "Namespaced"])
        : fault.required("spec.scope"),
    );
  const names = namesOf(object);
  for (const name of ["plural", "kind"] as const)
    if (names[name] === "") faults.push(fault.required(`spec.names.${name}`));
  for (const name of ["plural", "singular"] as const)
    if (names[name] !== "")
      for (const text of nameFaults("label1035", names[name]))
        faults.push(fault.invalid(`spec.names.${name}`, names[name], text));
  for (const name of ["shortNames", "categories"] as const)
    names[name].forEach((one, index) => {
      for (const text of nameFaults("label1035", one))
        faults.push(fault.invalid(`spec.names.${name}[${index}]`, one, text));
    });
  for (const name of ["kind", "listKind"] as const)
    for (const text of names[name] === "" ? [] : nameFaults("label1035", names[name].toLowerCase()))
      faults.push(
        fault.invalid(`spec.names.${name}`, names[name], `may have mixed case, but should otherwise match: ${text}`),
      );
  if (names.kind !== "" && names.kind === names.listKind)
    faults.push(fault.invalid("spec.names.listKind", names.listKind, "kind and listKind may not be the same"));
  if (spec.preserveUnknownFields === true && at(old, "spec.preserveUnknownFields") !== true)
    faults.push(
      fault.invalid(
        "spec.preserveUnknownFields",
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ),
    );
  faults.push(...conversionFaults(fieldsOf(spec.conversion)));
  return [...faults, ...versionFaults(object, old)];
}

function versionFaults(object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  const faults: FieldFault[] = [];
  const versions = versionsOf(object);
  const names = new Set<unknown>();
  versions.forEach((version, index) => {
    const path = `spec.versions[${index}]`;
    if (names.has(version.name)) faults.push(fault.duplicate(`${path}.name`, version.name));
    names.add(version.name);
    for (const text of nameFaults("label1035", String(version.name ?? "")))
      faults.push(fault.invalid(`${path}.name`, version.name ?? "", text));
    // The real server names the fields of an only version as an older API did.
    const own = versions.length === 1 ? "spec" : path;
    faults.push(...columnFaults(version, own), ...servingFaults(version, own, path));
    // A schema that does not change stays allowed, even if a newer version of this server would refuse it.
    const before = old && versionsOf(old).find(({ name }) => name === version.name);
    if (before && isDeepStrictEqual(before.schema, version.schema)) return;
    faults.push(...schemaFaults(version, versions.length === 1 ? "spec.validation" : `${path}.schema`, path));
  });
  const stored = versions.filter(({ storage }) => storage === true).length;
  if (stored !== 1)
    faults.push(fault.invalid("spec.versions", versions, "must have exactly one version marked as storage version"));
  return faults;
}

function schemaFaults(version: Fields, path: string, versionPath: string): FieldFault[] {
  const schema = at(version, "schema.openAPIV3Schema");
  if (!isFields(schema)) return [fault.required(`${versionPath}.schema.openAPIV3Schema`, "schemas are required")];
  const { errors } = structuralSchema(schema as JsonObject, `${path}.openAPIV3Schema`);
  return statusCauses(errors ?? []).map(({ reason, field, message }) => ({
    reason: String(reason),
    field: String(field),
    message: String(message),
  }));
}

/** Faults of an update of a CRD: its group, kind, plural and scope are immutable. */
function changeFaults(object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  if (!old) return [];
  return ["spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"]
    .filter((path) => at(object, path) !== at(old, path))
    .map((path) => fault.invalid(path, at(object, path), "field is immutable"));
}
