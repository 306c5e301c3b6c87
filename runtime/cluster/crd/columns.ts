import { isFields, type KubeObject } from "../api/object.ts";
import { encodeJson, isNumber } from "../exact-json.ts";
import { since } from "../kinds/age.ts";
import { ageColumn, name } from "../kinds/columns/cells.ts";
import type { Column } from "../kinds/resource-type.ts";
import { jsonPath } from "./json-path.ts";

const types = ["string", "integer", "number", "boolean", "date"] as const;

/** The columns of a CRD version's `additionalPrinterColumns`. Default: name and age. */
export function customColumns(definitions: unknown): Column[] {
  if (!Array.isArray(definitions) || definitions.length === 0) return [name, ageColumn];
  return [name, ...definitions.filter(isFields).map(column)];
}

function column(definition: Record<string, unknown>): Column {
  const path = String(definition.jsonPath ?? "");
  const read = jsonPath(path);
  const type = types.find((one) => one === definition.type) ?? "string";
  return {
    name: String(definition.name),
    type,
    format: String(definition.format ?? ""),
    description: String(definition.description ?? `Custom resource definition column (in JSONPath format): ${path}`),
    priority: typeof definition.priority === "number" ? definition.priority : 0,
    cell: (object: KubeObject, now: number) => cell(read?.(object)[0], type, now),
  };
}

function cell(value: unknown, type: Column["type"], now: number): unknown {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : typeof value === "bigint" ? value : null;
    case "number":
      return isNumber(value) ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? since(value, now) : "<invalid>";
    default:
      return typeof value === "object" ? encodeJson(value) : String(value);
  }
}
