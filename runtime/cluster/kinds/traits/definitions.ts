import { isDeepStrictEqual } from "node:util";
import { groupOf, namesOf, versionsOf } from "../../api/definition.ts";
import { at, type Fields, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { type JsonObject, statusCauses, structuralSchema } from "../../schema/index.ts";
import { nameFaults } from "../names.ts";
import type { Traits } from "../resource-type.ts";
import { items, made, otherwise } from "./pod-spec.ts";

const columnTypes = ["boolean", "date", "integer", "number", "string"];

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
  for (const name of ["kind", "listKind"] as const)
    for (const text of names[name] === "" ? [] : nameFaults("label1035", names[name].toLowerCase()))
      faults.push(
        fault.invalid(`spec.names.${name}`, names[name], `may have mixed case, but should otherwise match: ${text}`),
      );
  if (names.kind !== "" && names.kind === names.listKind)
    faults.push(fault.invalid("spec.names.listKind", names.listKind, "kind and listKind may not be the same"));
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
    const own = versions.length === 1 ? "spec" : path;
    items(version, "additionalPrinterColumns").forEach((column, place) => {
      const where = `${own}.additionalPrinterColumns[${place}]`;
      for (const name of ["name", "jsonPath"]) if (!column[name]) faults.push(fault.required(`${where}.${name}`));
      if (!columnTypes.includes(String(column.type)))
        faults.push(fault.invalid(`${where}.type`, column.type ?? "", `must be one of ${columnTypes.join(",")}`));
    });
    // A schema that does not change stays allowed, even if a newer version of this server would refuse it.
    const before = old && versionsOf(old).find(({ name }) => name === version.name);
    if (before && isDeepStrictEqual(before.schema, version.schema)) return;
    faults.push(...schemaFaults(version, `${path}.schema.openAPIV3Schema`));
  });
  const stored = versions.filter(({ storage }) => storage === true).length;
  if (stored !== 1)
    faults.push(fault.invalid("spec.versions", versions, "must have exactly one version marked as storage version"));
  return faults;
}

function schemaFaults(version: Fields, path: string): FieldFault[] {
  const schema = at(version, "schema.openAPIV3Schema");
  if (!isFields(schema)) return [fault.required(path, "schemas are required")];
  const { errors } = structuralSchema(schema as JsonObject, path);
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
