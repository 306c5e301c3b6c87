import type { KubeObject } from "../api/object.ts";
import { badRequest } from "../api/status.ts";
import type { ResourceType } from "../kinds/resource-type.ts";

interface Requirement {
  read: (object: KubeObject) => string;
  label: string;
  value: string;
  equal: boolean;
}

/** A field selector on one kind. Empty matches everything. */
export type FieldSelector = readonly Requirement[];

/** Parses `a=b,c!=d` for a kind; `\` escapes `,`, `=` and itself. Throws a 400 for a label the kind does not have. */
export function parseFieldSelector(text: string, type: ResourceType): FieldSelector {
  if (text === "") return [];
  const requirements: Requirement[] = [];
  for (const term of split(text)) {
    if (term === "") continue;
    const match = /^((?:[^\\=!]|\\.)*)(==|!=|=)(.*)$/s.exec(term);
    if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const label = match[1] ?? "";
    const read = reader(label, type);
    if (!read) throw badRequest(unknownLabel(label, type));
    requirements.push({ read, label, value: (match[3] ?? "").replace(/\\([\\,=])/g, "$1"), equal: match[2] !== "!=" });
  }
  return requirements;
}

/** Whether an object satisfies every requirement. */
export function matchesFields(selector: FieldSelector, object: KubeObject): boolean {
  return selector.every(({ read, value, equal }) => (read(object) === value) === equal);
}

function split(text: string): string[] {
  return text.match(/(?:[^\\,]|\\.)+/gs) ?? [];
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
