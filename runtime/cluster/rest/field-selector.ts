import { type FieldTerm, fieldTerms } from "../api/field-terms.ts";
import type { KubeObject } from "../api/object.ts";
import { badRequest } from "../api/status.ts";
import type { ResourceType } from "../kinds/resource-type.ts";

interface Requirement extends FieldTerm {
  read: (object: KubeObject) => string;
}

/** A field selector for one kind. Empty matches everything. */
export type FieldSelector = readonly Requirement[];

/** Parses `a=b,c!=d` for a kind. Throws a 400 for a label that the kind does not support. */
export function parseFieldSelector(text: string, type: ResourceType): FieldSelector {
  if (text === "") return [];
  const requirements: Requirement[] = [];
  for (const term of fieldTerms(text)) {
    if (typeof term === "string") throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    if (term.fault !== undefined) throw badRequest(`invalid field selector: ${term.fault}`);
    const read = reader(term.label, type);
    if (!read) throw badRequest(unknownLabel(term.label, type));
    requirements.push({ ...term, read });
  }
  return requirements;
}

/** True if an object satisfies every requirement. */
export function matchesFields(selector: FieldSelector, object: KubeObject): boolean {
  return selector.every(({ read, value, equal }) => (read(object) === value) === equal);
}

function reader(label: string, type: ResourceType): Requirement["read"] | undefined {
  if (label === "metadata.name") return (object) => object.metadata.name ?? "";
  if (label === "metadata.namespace" && type.namespaced) return (object) => object.metadata.namespace ?? "";
  if (label === "metadata.namespace" && !type.custom) return () => "";
  return type.fields && Object.hasOwn(type.fields, label) ? type.fields[label] : undefined;
}

function unknownLabel(label: string, type: ResourceType): string {
  if (type.custom) return `field label not supported: ${label}`;
  return type.fields
    ? `field label not supported: ${label}`
    : `"${label}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
}
