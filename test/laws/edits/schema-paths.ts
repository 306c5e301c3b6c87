import { type JsonSchema, jsonSchema } from "../../../runtime/manifest/json-schema.ts";

/** Every leaf field of the manifest's schema, as a path: `[]` after a list, `{}` after a map. */
export function schemaPaths(): string[] {
  return [...walk(jsonSchema(), "")];
}

function* walk(schema: JsonSchema, path: string): Generator<string> {
  const { properties, items, additionalProperties } = schema;
  if (properties) {
    for (const [name, each] of Object.entries(properties)) yield* walk(each, path === "" ? name : `${path}.${name}`);
  } else if (items) yield* walk(items, `${path}[]`);
  else if (isSchema(additionalProperties)) yield* walk(additionalProperties, `${path}{}`);
  else yield path;
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === "object" && value !== null;
