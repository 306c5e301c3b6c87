import { isNumber } from "../../exact-json.ts";
import { goText } from "../go-text.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Schema } from "../schema.ts";
import { type PathElement, pathText } from "./field-set.ts";
import { childSchema, itemElement } from "./shape.ts";

/**
 * Returns server-side apply's message if the object does not match the schema's type; `undefined` if it does. If several fields
 * are undeclared, the message names the first.
 */
export function typeError(object: JsonObject, schema: Schema): string | undefined {
  const errors = check(object, schema, [], true).sort();
  if (errors.length <= 1) return errors[0];
  return `errors:\n${errors.map((error) => `  ${error}`).join("\n")}`;
}

function check(value: Json, schema: Schema, path: readonly PathElement[], top: boolean): string[] {
  const fail = (text: string): string[] => [`${pathText(path)}: ${text}`];
  if (value === null) return [];
  switch (schema.type) {
    case "object":
      return isObject(value) ? checkFields(value, schema, path, top) : fail(`expected map, got &{${goText(value)}}`);
    case "array":
      return Array.isArray(value) ? checkItems(value, schema, path) : fail(`expected list, got &{${goText(value)}}`);
    case "string":
      return typeof value === "string"
        ? []
        : fail(`expected string, got &value.valueUnstructured{Value:${goText(value)}}`);
    case "integer":
    case "number":
      return isNumber(value) ? [] : fail(`expected numeric (int or float), got ${goType(value)}`);
    case "boolean":
      return typeof value === "boolean"
        ? []
        : fail(`expected boolean, got &value.valueUnstructured{Value:${goText(value)}}`);
    default:
      return [];
  }
}

function checkFields(value: JsonObject, schema: Schema, path: readonly PathElement[], top: boolean): string[] {
  const errors: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const type = childSchema(schema, name, top);
    const childPath = [...path, `f:${name}`];
    if (!type) return [...errors, `${pathText(childPath)}: field not declared in schema`];
    errors.push(...check(value[name] ?? null, type, childPath, false));
  }
  return errors;
}

function checkItems(value: readonly Json[], schema: Schema, path: readonly PathElement[]): string[] {
  const errors: string[] = [];
  const listType = schema["x-kubernetes-list-type"];
  const seen = new Set<PathElement>();
  value.forEach((item, index) => {
    let element = `i:${index}`;
    if (listType === "map" || listType === "set") {
      const named = itemElement(item, schema);
      if (named === undefined) {
        const keys = (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => JSON.stringify(key)).join(" ");
        const what = isObject(item)
          ? `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`
          : "associative list with keys may not have non-map elements";
        errors.push(`${pathText(path)}: element ${index}: ${what}`);
        return;
      }
      if (seen.has(named)) errors.push(`${pathText(path)}: duplicate entries for key ${pathText([named])}`);
      seen.add(named);
      element = named;
    }
    if (schema.items) errors.push(...check(item, schema.items, [...path, element], false));
  });
  return [...new Set(errors)];
}

function goType(value: Json): string {
  if (Array.isArray(value)) return "list";
  return isObject(value) ? "map" : typeof value === "boolean" ? "bool" : typeof value;
}
