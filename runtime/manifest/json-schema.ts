import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { manifestSchema } from "./schema.ts";

/** The part of JSON Schema that is read here. */
export interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly [keyword: string]: unknown;
}

export const schemaFile = fileURLToPath(new URL("function.schema.json", import.meta.url));

/** The manifest's schema for editors: draft 7, which is the newest that yaml-language-server documents. */
export function jsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(manifestSchema, { target: "draft-7", io: "input" });
  return {
    $id: "https://watchfire.dev/schemas/function.v1alpha1.json",
    title: "Watchfire Function",
    ...schema,
  } as JsonSchema;
}

/** As it is committed. */
export const renderSchema = (): string => `${JSON.stringify(jsonSchema(), null, 2)}\n`;

// `node runtime/manifest/json-schema.ts` writes it anew.
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(schemaFile, renderSchema());
