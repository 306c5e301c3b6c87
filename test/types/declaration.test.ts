import { transform } from "esbuild";
import fc from "fast-check";
import { expect, it } from "vitest";
import { declaration } from "../../runtime/types/declaration.ts";
import type { Definition } from "../../runtime/types/definition.ts";
import type { StructuralSchema } from "../../runtime/types/structural-schema.ts";

type Version = Definition["spec"]["versions"][number];

const version = (name: string, openAPIV3Schema: StructuralSchema, served = true): Version => ({
  name,
  served,
  schema: { openAPIV3Schema },
});

const definitionOf = (kind: string, versions: Version[]): Definition => ({
  kind: "CustomResourceDefinition",
  metadata: { name: "shops.shop.example" },
  spec: { group: "shop.example", names: { kind }, versions },
});
const shops = (...versions: Version[]): Definition => definitionOf("Shop", versions);

/** The lines of the field `f` with this schema, without their indentation. */
async function field(schema: StructuralSchema): Promise<string> {
  const text = await declaration(shops(version("v1", { type: "object", properties: { f: schema } })));
  const [, lines = ""] = /\n {2}f\?: ([\s\S]*?);\n}\n/.exec(text) ?? [];
  return lines.replace(/\s*\n\s*/g, " ");
}

it.each<[string, StructuralSchema, string]>([
  ["a whole number", { type: "integer" }, "number"],
  ["one of several texts", { type: "string", enum: ["a", 'b"'] }, String.raw`("a" | "b\"")`],
  ["an int-or-string", { "x-kubernetes-int-or-string": true }, "(number | string)"],
  ["what may be null", { type: "string", nullable: true }, "(string | null)"],
  ["a list", { type: "array", items: { type: "object", properties: { a: { type: "string" } } } }, "{ a?: string; }[]"],
  ["a map", { type: "object", additionalProperties: { type: "string" } }, "{ [k: string]: string; }"],
  ["what is not pruned", { type: "object", "x-kubernetes-preserve-unknown-fields": true }, "{ [k: string]: unknown; }"],
  ["what has no type", {}, "unknown"],
  [
    "an object of any kind",
    { type: "object", "x-kubernetes-embedded-resource": true },
    "{ apiVersion?: string; kind?: string; /** * The object's name, namespace, labels and the like. */ metadata?: ObjectMeta; [k: string]: unknown; }",
  ],
])("%s has its type", async (_, schema, type) => {
  expect(await field(schema)).toBe(type);
});

it("each served version has an interface of its own; one that is not served has none", async () => {
  const size: StructuralSchema = { type: "object", properties: { size: { type: "integer" } } };
  const text = await declaration(
    shops(version("v1", size), version("v1beta1", size), version("v1alpha1", size, false)),
  );
  expect([...text.matchAll(/^export interface (\w+)/gm)].map(([, name]) => name)).toEqual(["V1Shop", "V1beta1Shop"]);
  expect([...text.matchAll(/^ {4}"(.*)": (\w+);$/gm)].map(([, key, name]) => `${key} ${name}`)).toEqual([
    "shop.example/v1/Shop V1Shop",
    "shop.example/v1beta1/Shop V1beta1Shop",
  ]);
});

it("whatever the kind and its versions are called, each version has a type of its own in TypeScript that runs nothing", async () => {
  const label = fc.stringMatching(/^[a-z](?:[a-z0-9-]{0,4}[a-z0-9])?$/);
  const kind = fc.stringMatching(/^[A-Za-z](?:[A-Za-z0-9-]{0,6}[A-Za-z0-9])?$/);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(label, { minLength: 1, maxLength: 4 }), kind, async (names, kind) => {
      const made = await declaration(
        definitionOf(
          kind,
          names.map((name) => version(name, { type: "object" })),
        ),
      );
      expect((await transform(made, { loader: "ts", legalComments: "none" })).code).toBe("");
      expect(new Set(made.match(/^export interface \w+/gm)).size).toBe(names.length);
      for (const name of names) expect(made).toContain(`"shop.example/${name}/${kind}": `);
    }),
    { numRuns: 30 },
  );
});

it("whatever a definition's names, words and values are, its file is TypeScript that runs nothing", async () => {
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("*/ x = 1; /*", '"; evil()', "a{", "}", "* {"));
  const leaf = fc.record({ type: fc.constant("string"), description: text, enum: fc.array(text, { maxLength: 3 }) });
  const object = fc.record({ type: fc.constant("object"), properties: fc.dictionary(text, leaf, { maxKeys: 3 }) });
  await fc.assert(
    fc.asyncProperty(fc.dictionary(text, fc.oneof(leaf, object), { maxKeys: 3 }), text, async (properties, words) => {
      const schema = { type: "object", description: words, properties };
      const made = await declaration(shops(version("v1", schema)));
      const { code } = await transform(made, { loader: "ts", legalComments: "none" });
      expect(code).toBe("");
    }),
    { numRuns: 30 },
  );
});
