import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { type JsonSchema, jsonSchema, renderSchema, schemaFile } from "../../runtime/manifest/json-schema.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";

const root = resolve(import.meta.dirname, "../..");

describe("the schema for editors", () => {
  it("is committed as the code gives it (`node runtime/manifest/json-schema.ts` writes it)", () => {
    expect(readFileSync(schemaFile, "utf8")).toBe(renderSchema());
  });

  it("describes every field", () => {
    const silent: string[] = [];
    const visit = (schema: JsonSchema, path: string): void => {
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        if (typeof property.description !== "string") silent.push(`${path}.${name}`);
        visit(property, `${path}.${name}`);
      }
      if (schema.items) visit(schema.items, `${path}[]`);
    };
    visit(jsonSchema(), "");
    expect(silent).toEqual([]);
  });

  it("refuses unknown fields everywhere, and asks for no field that has a default", () => {
    const faults: string[] = [];
    const visit = (schema: JsonSchema, path: string): void => {
      if (schema.properties && schema.additionalProperties !== false) faults.push(`${path} is open`);
      for (const name of (schema.required as string[] | undefined) ?? []) {
        if (schema.properties?.[name] && "default" in schema.properties[name]) faults.push(`${path}.${name}`);
      }
      for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, `${path}.${name}`);
      if (schema.items) visit(schema.items, `${path}[]`);
    };
    visit(jsonSchema(), "");
    expect(faults).toEqual([]);
  });
});

describe("the functions that ship", () => {
  it("load without a fault", async () => {
    const { functions, faults } = await loadFunctions(join(root, "functions"));
    expect(faults.map(({ message }) => message)).toEqual([]);
    const documents = globSync("functions/*/function.yaml", { cwd: root }).flatMap((file) =>
      parseAllDocuments(readFileSync(join(root, file), "utf8")),
    );
    expect(functions.length).toBe(documents.length);
  });
});
