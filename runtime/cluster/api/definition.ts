import { type Fields, fieldsOf, isFields, type KubeObject } from "./object.ts";

/** A CRD's names, complete. */
export interface Names {
  plural: string;
  singular: string;
  kind: string;
  listKind: string;
  shortNames: string[];
  categories: string[];
}

/** Reads a CRD's names; it is complete by its defaults. */
export function namesOf(definition: KubeObject): Names {
  const names = fieldsOf(fieldsOf(definition.spec).names);
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
  return String(fieldsOf(definition.spec).group ?? "");
}

/** The versions of a CRD, as it lists them. */
export function versionsOf(definition: KubeObject): Fields[] {
  const { versions } = fieldsOf(definition.spec);
  return Array.isArray(versions) ? versions.filter(isFields) : [];
}

/** The collection that holds a CRD's objects. */
export function storageOf(definition: KubeObject): string {
  return `${namesOf(definition).plural}.${groupOf(definition)}`;
}
