import { type JsonObject, type Schema, structuralSchema } from "../../../runtime/cluster/schema/index.ts";

/** The schema of a custom resource that uses all features of a schema. */
export const widgetSchema: JsonObject = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["name"],
      properties: {
        name: { type: "string", minLength: 1, maxLength: 10, pattern: "^[a-z]*$" },
        replicas: { type: "integer", format: "int32", minimum: 0, maximum: 10, default: 1 },
        port: { "x-kubernetes-int-or-string": true },
        mode: { type: "string", enum: ["A", "B"] },
        note: { type: "string", nullable: true },
        since: { type: "string", format: "date-time" },
        tags: { type: "array", maxItems: 3, "x-kubernetes-list-type": "set", items: { type: "string" } },
        plain: { type: "array", items: { type: "string" } },
        ports: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            required: ["name"],
            properties: {
              name: { type: "string" },
              number: { type: "integer", minimum: 1 },
              protocol: { type: "string", default: "TCP" },
            },
          },
        },
        labels: { type: "object", maxProperties: 3, additionalProperties: { type: "string" } },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        whole: { type: "object", "x-kubernetes-map-type": "atomic", additionalProperties: { type: "string" } },
        child: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
        nested: {
          type: "object",
          default: {},
          properties: { level: { type: "string", default: "low" }, on: { type: "boolean" } },
        },
      },
    },
    status: { type: "object", properties: { phase: { type: "string" } } },
  },
};

/** Throws if the schema is not structural. */
export function structural(source: JsonObject): Schema {
  const { schema, errors } = structuralSchema(source);
  if (!schema) throw new Error(JSON.stringify(errors));
  return schema;
}

export const widget: Schema = structural(widgetSchema);

/** A widget with that spec. */
export function widgetOf(spec: JsonObject, rest: JsonObject = {}): JsonObject {
  return { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" }, spec, ...rest };
}

/** A schema of one field, `spec.value`. */
export function schemaOf(value: JsonObject, spec: JsonObject = {}): JsonObject {
  return {
    type: "object",
    properties: { spec: { type: "object", properties: { value }, ...spec } },
  };
}
