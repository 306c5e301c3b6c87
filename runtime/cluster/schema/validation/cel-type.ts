import type { Environment } from "@marcbachmann/cel-js";
import type { Schema } from "../schema.ts";
import { escapeName } from "./cel-value.ts";

/**
 * Declares the schema's types to the environment; returns the name of the schema's own, such as `int`, `list<string>`
 * or `schema.3`. `top`: the schema is of a whole resource, of whose metadata a rule sees the name alone.
 */
export function declareType(environment: Environment, schema: Schema, top: boolean): string {
  let count = 0;
  const declare = (node: Schema, whole: boolean): string => {
    if (node["x-kubernetes-int-or-string"]) return "dyn";
    switch (node.type) {
      case "object":
        return declareObject(node, whole);
      case "array":
        return node.items ? `list<${declare(node.items, false)}>` : "list<dyn>";
      case "string":
        return stringType(node.format);
      case "integer":
        return "int";
      case "number":
        return "double";
      case "boolean":
        return "bool";
      default:
        return "dyn";
    }
  };
  const declareObject = (node: Schema, whole: boolean): string => {
    const rest = node.additionalProperties;
    if (rest) return typeof rest === "object" ? `map<string, ${declare(rest, false)}>` : "map<string, dyn>";
    const fields: Record<string, string> = {};
    for (const [name, property] of Object.entries(node.properties ?? {})) {
      const escaped = escapeName(name);
      if (escaped !== undefined) fields[escaped] = declare(property, false);
    }
    if (whole || node["x-kubernetes-embedded-resource"]) {
      const metadata = `schema.${count++}`;
      environment.registerType(metadata, { fields: { name: "string", generateName: "string" } });
      Object.assign(fields, { apiVersion: "string", kind: "string", metadata });
    }
    const name = `schema.${count++}`;
    environment.registerType(name, { fields });
    return name;
  };
  return declare(schema, top);
}

function stringType(format: string | undefined): string {
  if (format === "date-time" || format === "date") return "google.protobuf.Timestamp";
  if (format === "duration") return "google.protobuf.Duration";
  return format === "byte" ? "bytes" : "string";
}
