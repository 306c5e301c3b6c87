import type { Value } from "./values.ts";

/** Returns a JSON Schema of draft 7, which every Helm reads. Names that values.yaml does not have are refused, at any depth. */
export function schemaOf(values: readonly Value[]): object {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Values of the chart watchfire",
    ...group(values),
  };
}

function group(values: readonly Value[]): object {
  const properties = Object.fromEntries(values.map((value) => [value.name, property(value)]));
  const required = values.filter(isNeeded).map(({ name }) => name);
  return { type: "object", additionalProperties: false, ...(required.length > 0 && { required }), properties };
}

/**
 * Whether a value is required. Helm removes a value that is set to null, so a value for which empty has a meaning must be
 * optional.
 */
function isNeeded({ default: value, children }: Value): boolean {
  if (children) return true;
  return Array.isArray(value) ? value.length > 0 : typeof value !== "object" && Boolean(value);
}

function property({ description, schema, default: value, children }: Value): object {
  const said = description === "" ? {} : { description };
  if (children) return { ...said, ...group(children) };
  return { ...said, type: typeOf(value), default: value, ...schema };
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (Number.isInteger(value)) return "integer";
  return value === null ? "null" : typeof value;
}
