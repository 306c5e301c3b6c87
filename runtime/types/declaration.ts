import { compile } from "json-schema-to-typescript";
import { kindSchema } from "./compiled-schema.ts";
import type { Definition } from "./definition.ts";

/** The name of a kind's type, as the SDK names the built-in ones: `V1Shop`. A `-` becomes `_`. */
const typeName = (version: string, kind: string): string =>
  `${version.charAt(0).toUpperCase()}${version.slice(1)}${kind}`.replaceAll("-", "_");

/**
 * The TypeScript file of a definition: an interface for each version that is served, with its descriptions as comments.
 * It puts them into the SDK's map of kinds, so that `ctx.kube.get({ apiVersion, kind })` gives the type.
 */
export async function declaration({ metadata, spec }: Definition): Promise<string> {
  const { group, names, versions } = spec;
  const { kind } = names;
  const served = versions.filter((version) => version.served);
  const interfaces = await Promise.all(
    served.map(async ({ name, schema }) => {
      const text = await compile(kindSchema(schema.openAPIV3Schema, `${group}/${name}`, kind), "Kind", {
        bannerComment: "",
        // Its formatter is not in the package.
        format: false,
        ignoreMinAndMaxItems: true,
      });
      // It would write the name in a case of its own.
      return laidOut(text).replace("export interface Kind ", `export interface ${typeName(name, kind)} `);
    }),
  );
  return [
    `// Made by \`watchfire types\` from the CustomResourceDefinition ${metadata.name}: change that, and make it again.`,
    'import type { ObjectMeta } from "@watchfire/sdk";',
    "",
    ...interfaces,
    'declare module "@watchfire/sdk" {',
    "  interface Kinds {",
    ...served.map(({ name }) => `    "${group}/${name}/${kind}": ${typeName(name, kind)};`),
    "  }",
    "}",
    "",
  ].join("\n");
}

/** Indents what the compiler writes without its formatter: a line for each field, and comments on lines of their own. */
function laidOut(text: string): string {
  let depth = 0;
  return text
    .trim()
    .split("\n")
    .map((raw) => {
      const line = raw.trim();
      const isComment = /^\/?\*/.test(line);
      if (isComment) return `${"  ".repeat(depth)}${line.startsWith("*") ? " " : ""}${line}`;
      if (line.startsWith("}")) depth--;
      const indented = "  ".repeat(depth) + line;
      if (line.endsWith("{")) depth++;
      return line === "" || line.endsWith("{") || depth === 0 ? indented : `${indented};`;
    })
    .concat("")
    .join("\n");
}
