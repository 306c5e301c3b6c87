import { durationPattern } from "../../runtime/manifest/duration-schema.ts";
import { type JsonSchema, jsonSchema } from "../../runtime/manifest/json-schema.ts";
import { sizePattern } from "../../runtime/manifest/quantity.ts";

/** A table of every field of a manifest, generated from the schema. */
export const manifestTable = (): string =>
  ["| field | value | default | meaning |", "| --- | --- | --- | --- |", ...rows(jsonSchema(), "")].join("\n");

function rows(schema: JsonSchema, path: string): string[] {
  const required = new Set(schema.required as string[] | undefined);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}${name}${field.items?.properties ? "[]" : ""}`;
    const cells = [`\`${here}\``, formOf(field), defaultOf(field, required.has(name)), String(field.description)];
    return [
      `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`,
      ...rows(field.items ?? field, `${here}.`),
    ];
  });
}

function formOf({ const: constant, enum: allowed, type, items, ...schema }: JsonSchema): string {
  if (constant !== undefined) return `\`${constant}\``;
  if (Array.isArray(allowed)) return allowed.map((one) => `\`${one}\``).join(", ");
  if (type === "array") return `list of ${items?.properties ? "objects" : formOf(items ?? {})}`;
  if (type === "integer" || type === "number") return `${type === "integer" ? "whole number, " : ""}${rangeOf(schema)}`;
  if (type === "object") return schema.additionalProperties === false ? "object" : "map of texts";
  return type === "boolean" ? "`true`, `false`" : textOf(schema);
}

function textOf({ pattern }: JsonSchema): string {
  if (pattern === durationPattern.source) return "duration, such as `1m30s`";
  return pattern === sizePattern.source ? "size, such as `64Mi`" : "text";
}

const rangeOf = ({ minimum, maximum }: JsonSchema): string => `${minimum} to ${maximum}`;

function defaultOf({ default: value, const: constant }: JsonSchema, required: boolean): string {
  if (required || constant !== undefined) return "required";
  if (value === undefined || JSON.stringify(value) === "{}") return "";
  if (!Array.isArray(value)) return `\`${value}\``;
  return value.length === 0 ? "none" : value.map((one) => `\`${one}\``).join(", ");
}
