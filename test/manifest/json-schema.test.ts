import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { renderSchema, schemaFile } from "../../runtime/manifest/editor-schema.ts";
import { type JsonSchema, jsonSchema } from "../../runtime/manifest/json-schema.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { manifestSchema } from "../../runtime/manifest/schema.ts";

const root = resolve(import.meta.dirname, "../..");

describe("the schema for editors", () => {
  it("is committed as the code gives it (`npm run docs` writes it)", () => {
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

describe("the examples of the schema", () => {
  /** Every schema with examples. */
  const found: (readonly [path: string, schema: JsonSchema])[] = [];
  const visit = (schema: JsonSchema, path: string): void => {
    if (schema.examples) found.push([path, schema]);
    for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, `${path}.${name}`);
    if (schema.items) visit(schema.items, `${path}[]`);
  };
  visit(JSON.parse(readFileSync(schemaFile, "utf8")), "");

  it("are valid values of their fields", () => {
    const invalid = found.flatMap(([path, schema]) =>
      (schema.examples as unknown[])
        .filter((example) => !z.fromJSONSchema(schema as never).safeParse(example).success)
        .map((example) => `${path}: ${JSON.stringify(example)}`),
    );
    expect(found.length).toBeGreaterThan(30);
    expect(invalid).toEqual([]);
  });

  it("are a manifest, and the kinds of Kubernetes 1.36 where a kind is named", () => {
    const examplesOf = (path: string) => found.find(([each]) => each === path)?.[1].examples as unknown[];
    expect(manifestSchema.safeParse(examplesOf("")[0]).success).toBe(true);
    for (const place of [".spec.triggers[].watch", ".spec.triggers[].key.owner", ".spec.reads[]"]) {
      expect(examplesOf(`${place}.apiVersion`)).toEqual(expect.arrayContaining(["v1", "apps/v1", "batch/v1"]));
      expect(examplesOf(`${place}.kind`)).toEqual(expect.arrayContaining(["ConfigMap", "Deployment", "Pod"]));
    }
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
