import { z } from "zod";
import type { Path } from "../document/path.ts";
import { manifestSchema } from "./schema.ts";

/** The part of JSON Schema that is used here. */
export interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly [keyword: string]: unknown;
}

/** Returns the manifest's schema for editors: draft 7, the newest that yaml-language-server documents. */
export function jsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(manifestSchema, { target: "draft-7", io: "input" });
  return {
    $id: "https://watchfire.dev/schemas/function.v1alpha1.json",
    title: "Watchfire Function",
    ...schema,
  } as JsonSchema;
}

/** Returns the schema of the value at a path; `undefined` if the schema does not define that path. */
export function schemaAt(schema: JsonSchema, path: Path): JsonSchema | undefined {
  let found: JsonSchema | undefined = schema;
  for (const step of path) found = typeof step === "number" ? found?.items : found?.properties?.[String(step)];
  return found;
}
