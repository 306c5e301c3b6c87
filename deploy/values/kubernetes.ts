import { builtInData } from "../../runtime/cluster/schema/built-in.ts";
import { isObject, type Json, type JsonObject } from "../../runtime/cluster/schema/json.ts";

/**
 * Returns the schema that a real API server publishes for a type, such as `io.k8s.api.core.v1.SecurityContext`, adapted to chart
 * values: complete, without references, and refusing unknown fields. Types in `replaced` are taken from there. `undefined` for an
 * unknown name.
 */
export function kubernetesForm(
  name: string,
  replaced: Readonly<Record<string, object>>,
): Readonly<Record<string, unknown>> | undefined {
  const schema = builtInData().schemas[name];
  return schema && (strict(schema, replaced) as Record<string, unknown>);
}

const prefix = "#/";

function strict(schema: JsonObject, replaced: Readonly<Record<string, object>>): object {
  const inner = (node: Json | undefined): object => (isObject(node) ? strict(node, replaced) : {});
  const { $ref, allOf, oneOf, type, required, properties, items, additionalProperties } = schema;
  const only = Array.isArray(allOf) && isObject(allOf[0]) ? allOf[0].$ref : $ref;
  if (typeof only === "string") {
    const name = only.slice(prefix.length);
    return replaced[name] ?? inner(builtInData().schemas[name]);
  }
  // A port's name or number: merged into one list of types, because for alternatives Helm's error only says that nothing matches.
  if (Array.isArray(oneOf)) return { type: oneOf.flatMap((each) => (isObject(each) ? (each.type ?? []) : [])) };
  return {
    type,
    ...(required !== undefined && { required }),
    ...(schema.enum !== undefined && { enum: schema.enum }),
    ...(items !== undefined && { items: inner(items) }),
    ...(isObject(properties) && {
      additionalProperties: false,
      properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, inner(field)])),
    }),
    ...(isObject(additionalProperties) && { additionalProperties: inner(additionalProperties) }),
  };
}
