import { type JsonSchema, jsonSchema } from "../../../runtime/manifest/json-schema.ts";

const manifest = jsonSchema();

/** Steps of a schema's path, as `schema-paths.ts` writes it. */
const stepsOf = (path: string): string[] => path.match(/[^.[\]{}]+|\[\]|\{\}/g) ?? [];

/** The manifest schema at a path; `[]` is a list's item, `{}` a map's value. Throws if the path does not exist. */
export function schemaOf(path: string): JsonSchema {
  return stepsOf(path).reduce<JsonSchema>((schema, step) => {
    const { properties, items, additionalProperties } = schema;
    const next = step === "[]" ? items : step === "{}" ? additionalProperties : properties?.[step];
    if (typeof next !== "object" || next === null) throw new Error(`the schema has no ${path}`);
    return next as JsonSchema;
  }, manifest);
}

/** The schema's limit of a list, a number or a text. Throws if it has no limit. */
export function most(path: string): number {
  const found = limitOf(path);
  if (found === undefined) throw new Error(`the schema sets no limit at ${path}`);
  return found;
}

/** The schema's limit; `undefined` if it has no limit. */
export function limitOf(path: string): number | undefined {
  const { maxItems, maximum, maxLength } = schemaOf(path) as Readonly<Record<string, unknown>>;
  const found = maxItems ?? maximum ?? maxLength;
  return typeof found === "number" ? found : undefined;
}

/** The paths of the lists that contain a field. */
export const listsOn = (path: string): string[] => [...path.matchAll(/\[\]/g)].map(({ index }) => path.slice(0, index));

/** The largest value, longest text and longest list of a document at each path. */
export function sizesOf(value: unknown, path = "", found = new Map<string, number>()): Map<string, number> {
  const note = (size: number) => found.set(path, Math.max(size, found.get(path) ?? 0));
  if (Array.isArray(value)) {
    note(value.length);
    for (const each of value) sizesOf(each, `${path}[]`, found);
  } else if (value !== null && typeof value === "object") {
    const isMap = path.endsWith("matchLabels");
    for (const [name, each] of Object.entries(value))
      sizesOf(each, isMap ? `${path}{}` : path === "" ? name : `${path}.${name}`, found);
  } else if (value !== undefined) note(typeof value === "string" ? value.length : Number(value));
  return found;
}
